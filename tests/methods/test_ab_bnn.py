import numpy as np
import torch
from methods.method_gradients import input_and_gradient, layer_of, np_alpha, np_sign, sample

AXES = (1, 2, 3)
GAIN = np.array([0.5, -1.0, 2.0, 0.1])


def test_filters_are_standardized_scaled_by_their_size_and_a_gain() -> None:
    w, g = sample((4, 1, 2, 1))  # few weights in a filter, so that some lie beyond the clip
    w[3] = 50 * np.abs(w[3])
    layer = layer_of("ab_bnn", np.pad(w, ((0, 0), (0, 0), (0, 0), (0, 1))))
    layer.weight.data = torch.from_numpy(w.copy())
    layer.binarizer.gain.data = torch.from_numpy(GAIN)
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(g))
    gain, n = GAIN.reshape(4, 1, 1, 1), w[0].size
    std = w.std(axis=AXES, keepdims=True)
    v = (w - w.mean(AXES, keepdims=True)) / (std + 1e-5) / np.sqrt(n)
    np.testing.assert_allclose(out.detach(), gain * np_alpha(v) * np_sign(v))
    np.testing.assert_allclose(
        layer.binarizer.gain.grad, (g * np_alpha(v) * np_sign(v)).sum(AXES), rtol=1e-12
    )
    # v = (w - mean) / (std + e) / sqrt(n):  dv_j/dw_i = ((j=i) - 1/n) / .. - v_j (w_i - mean) / (n std (std + e))
    g_v = g * gain * (np.abs(v) <= 1)
    centred = (g_v - g_v.mean(AXES, keepdims=True)) / (std + 1e-5) / np.sqrt(n)
    pull = (w - w.mean(AXES, keepdims=True)) * (g_v * v).sum(AXES, keepdims=True) / (n * std * (std + 1e-5))
    np.testing.assert_allclose(layer.weight.grad, centred - pull, atol=1e-12)


def test_the_gradient_of_activations_is_that_of_a_sigmoid() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("ab_bnn", x, g)
    s = 1 / (1 + np.exp(-3 * x))
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, 2 * 3 * s * (1 - s) * g, atol=1e-12)
