import numpy as np
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_conv,
    np_sign,
    sample,
    weight_and_gradient,
)


def test_weights_are_signs_with_the_gradient_unchanged_and_clipped() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("binary_connect", w, g)
    np.testing.assert_array_equal(value, np_sign(w))
    np.testing.assert_array_equal(gradient, g)
    layer = layer_of("binary_connect", 3 * w)
    layer.weight.grad = torch.zeros_like(layer.weight)
    torch.optim.SGD([layer.weight], lr=0.1).step()
    np.testing.assert_array_equal(layer.weight.detach(), np.clip(3 * w, -1, 1))


def test_activations_stay_real_in_both_views() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("binary_connect", x, g)
    np.testing.assert_array_equal(value, x)
    np.testing.assert_array_equal(gradient, g)
    w, _ = sample()
    layer = layer_of("binary_connect", w)
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), np_conv(x, np_sign(w)), atol=1e-12)
    layer.view = "latent"
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), np_conv(x, w), atol=1e-12)
