import numpy as np
from methods.method_gradients import (
    input_and_gradient,
    np_alpha,
    np_sign,
    np_standardize,
    np_standardize_backward,
    sample,
    weight_and_gradient,
)

PROGRESS = 0.7
T = 10 ** (-3 + 4 * PROGRESS)
K = max(1 / T, 1)


def slope(v: np.ndarray, t: float = T, k: float = K) -> np.ndarray:
    return k * t * (1 - np.tanh(t * v) ** 2)


def test_weight_is_the_sign_of_the_standardized_filter_times_a_power_of_two() -> None:
    w, g = sample()
    w[0] *= 5
    w[1, :, 0] += 30  # a few far values: mean |v| falls below 1/sqrt(2), the scale to 1/2
    value, gradient = weight_and_gradient("irnet", w, g, lambda method: method.set_progress(PROGRESS))
    v = np_standardize(w)
    scale = 2.0 ** np.round(np.log2(np_alpha(v)))
    np.testing.assert_allclose(value, scale * np_sign(v))
    np.testing.assert_allclose(gradient, np_standardize_backward(w, g * scale * slope(v)), atol=1e-12)


def test_activations_have_the_same_estimator() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("irnet", x, g, lambda method: method.set_progress(PROGRESS))
    np.testing.assert_array_equal(value, np_sign(x))
    assert (np.abs(x) > 1).any()
    np.testing.assert_allclose(gradient, g * slope(x) * (np.abs(x) <= 1))


def test_it_starts_as_nearly_the_identity_of_what_hardtanh_lets_through() -> None:
    x, g = sample((2, 3, 4, 4))
    _, gradient = input_and_gradient("irnet", x, g)
    np.testing.assert_allclose(gradient, g * (np.abs(x) <= 1), rtol=2e-5)
