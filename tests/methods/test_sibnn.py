import numpy as np
import pytest
import torch
from methods.method_gradients import layer_of, np_alpha, np_sign, sample, weight_and_gradient

from latentbit.methods.parts.binarizer import NotDeployable


def test_weight_gradient_is_the_released_one() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("sibnn", w, g)
    b, n = np_sign(w), w[0].size
    np.testing.assert_allclose(value, np_alpha(w) * b)
    through_alpha = b * (g * b).mean(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(gradient, g * (np.abs(w) <= 1) * (1 - 1 / n) + through_alpha, atol=1e-12)


def test_activation_is_a_step_with_an_asymmetric_window() -> None:
    x, g = sample((2, 3, 4, 4))
    method = layer_of("sibnn", np.ones((1, 3, 1, 1))).binarizer
    theta, s = np.array([0.1, -0.2, 0.3]).reshape(3, 1, 1), np.array([1.0, 2.0, 0.5]).reshape(3, 1, 1)
    method.threshold.data, method.slope.data = torch.from_numpy(theta), torch.from_numpy(s)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = method.input(t)
    out.backward(torch.from_numpy(g))
    u = s * (x - theta)
    np.testing.assert_array_equal(out.detach(), (u >= 0).astype(float))
    passed = g * ((u > -0.3) & (u < 1))
    np.testing.assert_allclose(t.grad, passed * s)
    np.testing.assert_allclose(method.threshold.grad.flatten(), -(passed * s).sum(axis=(0, 2, 3)))
    np.testing.assert_allclose(method.slope.grad.flatten(), (passed * (x - theta)).sum(axis=(0, 2, 3)))


def test_a_turned_slope_can_not_be_packed() -> None:
    layer = layer_of("sibnn", sample()[0])
    layer.binarizer.slope.data[1] = -1.0
    with pytest.raises(NotDeployable, match="slope"):
        layer.binarizer.deploy(layer.weight)
