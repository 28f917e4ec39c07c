import numpy as np
import torch
from methods.method_gradients import layer_of, np_alpha, np_conv, np_sign, sample, weight_and_gradient


def test_scaled_signs_multiply_real_activations() -> None:
    w, g = sample()
    x, _ = sample((2, 3, 4, 4), seed=1)
    value, gradient = weight_and_gradient("bwn", w, g)
    alpha, b = np_alpha(w), np_sign(w)
    np.testing.assert_allclose(value, alpha * b)
    through_alpha = b * (g * b).mean(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(gradient, g * alpha * (np.abs(w) <= 1) + through_alpha, atol=1e-12)
    out = layer_of("bwn", w)(torch.from_numpy(x))
    np.testing.assert_allclose(out.detach(), np_conv(x, alpha * b), atol=1e-12)
