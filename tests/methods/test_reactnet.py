import numpy as np
import torch
from methods.method_gradients import layer_of, np_alpha, np_sign, sample, weight_and_gradient


def test_shifted_sign_learns_its_shift() -> None:
    x, g = sample((2, 3, 4, 4))
    method = layer_of("reactnet", np.ones((1, 3, 1, 1))).binarizer
    shift = np.array([0.5, -0.3, 0.0]).reshape(3, 1, 1)
    method.shift.data = torch.from_numpy(shift)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = method.input(t)
    out.backward(torch.from_numpy(g))
    np.testing.assert_array_equal(out.detach(), np_sign(x + shift))
    expected = g * np.maximum(0, 2 - 2 * np.abs(x + shift))
    np.testing.assert_allclose(t.grad, expected, atol=1e-12)
    np.testing.assert_allclose(method.shift.grad.flatten(), expected.sum(axis=(0, 2, 3)))


def test_weights_are_those_of_bireal() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("reactnet", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_allclose(gradient, g * (np.abs(w) <= 1))
