import numpy as np
from methods.method_gradients import input_and_gradient, np_sign, sample, weight_and_gradient


def test_one_scale_for_the_layer_and_an_unchanged_gradient() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("dorefa", w, g)
    np.testing.assert_allclose(value, np.abs(w).mean() * np_sign(w))
    np.testing.assert_array_equal(gradient, g)


def test_activations_are_zero_and_one() -> None:
    x, g = sample((2, 3, 4, 4))
    x[0, 0, 0] = [0.0, 0.25, 0.5, 1.0]
    value, gradient = input_and_gradient("dorefa", x, g)
    np.testing.assert_array_equal(value, (x >= 0.5).astype(float))
    np.testing.assert_allclose(gradient, g * ((x >= 0) & (x <= 1)))
