import numpy as np
import torch
from methods.method_gradients import layer_of, np_alpha, np_sign, sample, weight_and_gradient


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


def test_a_falling_slope_is_a_turned_bit_and_none_is_always_on() -> None:
    layer = layer_of("sibnn", sample()[0])
    method = layer.binarizer
    method.slope.data = torch.tensor([2.0, -1.0, 0.0]).view(3, 1, 1)
    method.threshold.data = torch.tensor([0.3, -0.7, 0.1]).view(3, 1, 1)
    deployed = method.deploy(layer.weight.detach())
    assert deployed.flip.tolist() == [False, True, False]
    x = torch.tensor([[-1e30, -0.7, -0.69999, 0.0, 0.29999, 0.3, 1e30]]).expand(3, -1)[None, :, None]
    bit = (x < deployed.threshold.view(3, 1, 1)) ^ deployed.flip.view(3, 1, 1)
    assert torch.equal(method.input(x), (~bit).float())
