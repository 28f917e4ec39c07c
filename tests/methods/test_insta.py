import numpy as np
import torch
from methods.method_gradients import layer_of, np_alpha, np_sign, sample, weight_and_gradient


def test_weights_are_those_of_bireal() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("insta", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_allclose(gradient, g * (np.abs(w) <= 1))


def test_the_threshold_follows_the_third_moment_of_each_map() -> None:
    x, g = sample((2, 3, 4, 4))
    a, b = np.array([0.5, -0.2, 0.0]).reshape(3, 1, 1), np.array([0.1, 0.0, -0.3]).reshape(3, 1, 1)
    method = layer_of("insta", np.ones((1, 3, 1, 1))).binarizer
    method.slope.data, method.threshold.data = torch.from_numpy(a), torch.from_numpy(b)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = method.input(t)
    out.backward(torch.from_numpy(g))
    moment = (x**3).mean(axis=(2, 3), keepdims=True)
    u = x - (a * moment + b)
    np.testing.assert_array_equal(out.detach(), np_sign(u))
    g_u = g * np.maximum(0, 2 - 2 * np.abs(u))
    np.testing.assert_allclose(method.threshold.grad, -g_u.sum(axis=(0, 2, 3)).reshape(3, 1, 1))
    np.testing.assert_allclose(method.slope.grad, -(g_u * moment).sum(axis=(0, 2, 3)).reshape(3, 1, 1))
    through_moment = a * 3 * x**2 / 16 * g_u.sum(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(t.grad, g_u - through_moment, atol=1e-12)


def test_rows_of_tokens_share_a_threshold() -> None:
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    conv = layer_of("insta", np.ones((1, 3, 1, 1))).binarizer
    from latentbit import BinaryLinear
    from latentbit.methods import INSTA

    linear = BinaryLinear.from_float(torch.nn.Linear(3, 1, dtype=torch.float64), INSTA()).binarizer
    for method in (conv, linear):
        method.slope.data = torch.tensor([0.5, -0.2, 0.3], dtype=torch.float64).view_as(method.slope)
    as_map = conv.moved(x.mT.unsqueeze(-1)).squeeze(-1).mT
    torch.testing.assert_close(linear.moved(x), as_map)
