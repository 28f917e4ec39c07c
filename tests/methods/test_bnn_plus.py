import numpy as np
import torch
from methods.method_gradients import input_and_gradient, layer_of, np_alpha, np_sign, sample


def test_input_gradient_is_that_of_sign_swish() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("bnn_plus", x, g)
    np.testing.assert_array_equal(value, np_sign(x))
    z = 5 * x
    np.testing.assert_allclose(gradient, g * 5 * (2 - z * np.tanh(z / 2)) / (1 + np.cosh(z)), atol=1e-12)


def test_learned_scale_is_drawn_to_the_weights() -> None:
    w, g = sample()
    layer = layer_of("bnn_plus", w)
    method = layer.binarizer
    method.set_progress(0.5)
    factor = np.array([0.5, 1.0, 2.0, 1.5])
    method.alpha.factor.data = torch.from_numpy(factor)
    alpha = np_alpha(w) * factor.reshape(4, 1, 1, 1)
    out = method.weight(layer.weight)
    out.backward(torch.from_numpy(g))
    np.testing.assert_allclose(out.detach(), alpha * np_sign(w))
    np.testing.assert_allclose(layer.weight.grad, alpha * g * (np.abs(w) <= 1))
    through_alpha = (g * np_sign(w)).sum(axis=(1, 2, 3)) * np_alpha(w).flatten()
    np.testing.assert_allclose(method.alpha.factor.grad, through_alpha)

    layer.weight.grad = None
    penalty = method.penalty(layer.weight)
    penalty.backward()
    strength = 5.5e-6
    np.testing.assert_allclose(penalty.detach(), strength * np.abs(alpha - np.abs(w)).mean())
    gradient = strength * np.sign(np.abs(w) - alpha) * np.sign(w) / w.size
    np.testing.assert_allclose(layer.weight.grad, gradient)
