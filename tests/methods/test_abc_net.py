import numpy as np
import torch
from methods.method_gradients import layer_of, np_sign, sample, weight_and_gradient

from latentbit.methods import ABCNet

SHIFTS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


def np_bases(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    b = np.stack([np_sign(w - w.mean() + u * w.std()) for u in SHIFTS])
    alpha = np.linalg.lstsq(b.reshape(5, -1).T, w.flatten(), rcond=None)[0]
    return b, alpha


def test_filters_are_the_best_sum_of_five_bases() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("abc_net", w, g)
    b, alpha = np_bases(w)
    expected = np.tensordot(alpha, b, 1)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    # Straight through each base: sum over m of alpha_m times the gradient of what its convolution multiplies.
    np.testing.assert_allclose(gradient, alpha.sum() * g, rtol=1e-6)
    one = np.abs(w - np.abs(w).mean() * np_sign(w)).mean()
    assert np.abs(w - value).mean() < 0.5 * one


def test_equal_bases_share_their_part() -> None:
    """A layer of weights that are all the same has five equal bases: any split of alpha is a best one."""
    value, _ = weight_and_gradient("abc_net", np.full((2, 1, 3, 3), 0.25), np.ones((2, 1, 3, 3)))
    np.testing.assert_allclose(value, 0.25, rtol=1e-6)


def test_activations_are_a_sum_of_shifted_bits() -> None:
    x, g = sample((2, 3, 4, 4))
    v, beta = np.array([0.9, 0.5, -0.2, 0.1, 0.4]), np.array([0.3, -0.2, 0.5, 0.1, 1.0])
    method = layer_of("abc_net", np.ones((1, 3, 1, 1))).binarizer
    method.thresholds.data, method.beta.data = torch.from_numpy(0.5 - v), torch.from_numpy(beta)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = method.input(t)
    out.backward(torch.from_numpy(g))
    shifted = x + v.reshape(5, 1, 1, 1, 1)
    bits = 2.0 * (np.clip(shifted, 0, 1) >= 0.5) - 1
    window = (shifted >= 0) & (shifted <= 1)
    scales = beta.reshape(5, 1, 1, 1, 1)
    np.testing.assert_allclose(out.detach(), (scales * bits).sum(0))
    np.testing.assert_allclose(t.grad, g * (scales * window).sum(0), atol=1e-12)
    np.testing.assert_allclose(method.beta.grad, (g * bits).sum((1, 2, 3, 4)))
    # thresholds are 1/2 - v
    np.testing.assert_allclose(method.thresholds.grad, -(g * scales * window).sum((1, 2, 3, 4)))
    latent = (scales * (2 * np.clip(shifted, 0, 1) - 1)).sum(0)
    np.testing.assert_allclose(method.latent_input(torch.from_numpy(x)).detach(), latent, atol=1e-12)


def test_one_base_is_one_bit() -> None:
    w, _ = sample()
    layer = layer_of("abc_net", w)
    layer.binarizer = ABCNet(weight_bases=1, input_bases=1).for_layer(layer).double()
    deployed = layer.binarizer.deploy(layer.weight.detach())
    assert deployed.plus == () and deployed.threshold.tolist() == [0]
    np.testing.assert_array_equal(deployed.signs, np_sign(w - w.mean()))
