import numpy as np
from methods.method_gradients import input_and_gradient, np_alpha, np_sign, sample, weight_and_gradient


def test_weight_is_alpha_b_and_alpha_carries_no_gradient() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("sign", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_allclose(gradient, np_alpha(w) * g * (np.abs(w) <= 1))


def test_input_passes_inside_one() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("sign", x, g)
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * (np.abs(x) <= 1))
