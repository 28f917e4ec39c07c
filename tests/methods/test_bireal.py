import numpy as np
from methods.method_gradients import input_and_gradient, np_alpha, np_sign, sample, weight_and_gradient


def test_gradient_reaches_w_clipped_but_not_scaled() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("bireal", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_allclose(gradient, g * (np.abs(w) <= 1))


def test_input_gradient_is_the_triangle() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("bireal", x, g)
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x)), atol=1e-12)
