import numpy as np
import torch
from methods.method_gradients import (
    layer_of,
    np_sign,
    np_standardize,
    np_standardize_backward,
    sample,
    weight_and_gradient,
)

PROGRESS = 0.7
T = 10 ** (-3 + 4 * PROGRESS)
AXES = (1, 2, 3)


def test_filters_take_two_values_around_their_mean() -> None:
    w, g = sample()
    w += np.array([0.0, 0.5, -1.0, 2.0]).reshape(4, 1, 1, 1)
    value, gradient = weight_and_gradient("adabin", w, g, lambda method: method.set_progress(PROGRESS))
    m, s = w.mean(AXES, keepdims=True), w.std(AXES, keepdims=True)
    u = np_standardize(w, ddof=0)
    np.testing.assert_allclose(value, s * np_sign(u) + m)
    slope = max(1 / T, 1) * T * (1 - np.tanh(T * u) ** 2)
    through_sign = np_standardize_backward(w, g * s * slope, ddof=0)
    through_s = (g * np_sign(u)).sum(AXES, keepdims=True) * u / w[0].size
    through_m = g.mean(AXES, keepdims=True)
    np.testing.assert_allclose(gradient, through_sign + through_s + through_m, atol=1e-12)


def test_activations_take_two_learned_values() -> None:
    x, g = sample((2, 3, 4, 4))
    method = layer_of("adabin", np.ones((1, 3, 1, 1))).binarizer
    alpha, beta = 0.7, 0.2
    method.alpha.data.fill_(alpha)
    method.beta.data.fill_(beta)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = method.input(t)
    out.backward(torch.from_numpy(g))
    u = (x - beta) / alpha
    slope = np.maximum(0, 2 - 2 * np.abs(u))
    np.testing.assert_allclose(out.detach(), alpha * (np_sign(u) + beta))
    np.testing.assert_allclose(t.grad, g * slope, atol=1e-12)
    np.testing.assert_allclose(method.alpha.grad, (g * (np_sign(u) + beta - slope * u)).sum())
    np.testing.assert_allclose(method.beta.grad, (g * (alpha - slope)).sum())
