import numpy as np
import torch
from methods.method_gradients import input_and_gradient, layer_of, np_conv, np_sign, sample

SCALES = np.array([0.3, 1.0, -0.2, 0.5, 0.1])


def test_five_layers_with_weights_of_their_own_are_added() -> None:
    """Values and gradients of five convolutions, each with the rule of the release."""
    w, _ = sample()
    x, _ = sample((2, 3, 5, 5), seed=1)
    layer = layer_of("group_net", w)
    method = layer.binarizer
    method.scales.data = torch.from_numpy(SCALES)
    ws = np.concatenate([w[None], method.others.detach().numpy()])
    b = np.abs(ws).mean((1, 2, 3, 4), keepdims=True) * np_sign(ws)
    parts = np.stack([np_conv(np_sign(x), one) for one in b])
    out = layer(torch.from_numpy(x))
    np.testing.assert_allclose(out.detach(), np.tensordot(SCALES, parts, 1), atol=1e-12)

    g = np.random.default_rng(2).normal(size=parts[0].shape)
    out.backward(torch.from_numpy(g))
    np.testing.assert_allclose(method.scales.grad, (parts * g).sum((1, 2, 3, 4)))
    # Of a filter: the bits under its taps, weighted by the gradient of the output.
    bits = np.lib.stride_tricks.sliding_window_view(np_sign(x), (3, 3), axis=(2, 3))
    of_filter = np.einsum("nohw,nchwkl->ockl", g, bits)
    np.testing.assert_allclose(layer.weight.grad, SCALES[0] * of_filter, atol=1e-12)
    for k in range(1, 5):
        np.testing.assert_allclose(method.others.grad[k - 1], SCALES[k] * of_filter, atol=1e-12)


def test_the_latent_view_has_the_sum_of_the_real_filters() -> None:
    w, _ = sample()
    method = layer_of("group_net", w).binarizer
    method.scales.data = torch.from_numpy(SCALES)
    ws = np.concatenate([w[None], method.others.detach().numpy()])
    found = method.latent_weight(torch.from_numpy(w))
    np.testing.assert_allclose(found.detach(), np.tensordot(SCALES, ws, 1))


def test_activations_have_the_gradient_of_approx_sign() -> None:
    x, g = sample((2, 3, 4, 4))
    _, gradient = input_and_gradient("group_net", x, g)
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x)), atol=1e-12)
