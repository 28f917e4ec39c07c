import numpy as np
from methods.method_gradients import np_alpha, np_sign, sample, weight_and_gradient


def test_the_two_states_have_coefficients_of_their_own() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("sabnn", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_allclose(gradient, np.where(w >= 0, 1.0, 0.8) * g * (np.abs(w) <= 1))
