import numpy as np
import torch
from methods.method_gradients import input_and_gradient, layer_of, np_sign, sample

AXES = (1, 2, 3)
LEARNED = np.array([0.5, -1.0, 2.0, 0.1])


def test_the_pull_of_w_to_its_binary_filter_follows_flips_and_gradients() -> None:
    w, g = sample()
    g *= np.array([1e-4, 1e-4, 1e-6, 10.0]).reshape(4, 1, 1, 1)
    layer = layer_of("rebnn", w)
    method = layer.binarizer
    method.scale.data = torch.from_numpy(LEARNED.copy())
    flip = np.zeros_like(w, dtype=bool)
    flip[1:, 0] = True  # a third of the signs of all filters but the first
    with torch.no_grad():
        layer.weight[torch.from_numpy(flip)] *= -1
    method.after_step(layer.weight.data, 0.1)
    w = np.where(flip, -w, w)
    out = method.weight(layer.weight)
    out.backward(torch.from_numpy(g))
    s, b = np.abs(LEARNED).reshape(4, 1, 1, 1), 0.02 * np_sign(w)
    gamma = np.clip(flip.mean(AXES) * np.abs(g).max(AXES), 1e-5, 2e-4).reshape(4, 1, 1, 1)
    assert gamma.flatten()[[0, 2]].tolist() == [1e-5] * 2 and 1e-5 < gamma[1] < gamma[3] == 2e-4
    np.testing.assert_allclose(out.detach(), s * b)
    np.testing.assert_allclose(layer.weight.grad, s * g + gamma * (w - s * b), rtol=1e-6)
    of_scale = (g * w).sum(AXES) - (gamma * (w - s * b) * b).sum(AXES)
    np.testing.assert_allclose(method.scale.grad, np.sign(LEARNED) * of_scale, rtol=1e-6)


def test_activations_are_shifted() -> None:
    x, g = sample((2, 3, 4, 4))
    shift = np.array([0.3, -0.5, 0.0]).reshape(3, 1, 1)
    value, gradient = input_and_gradient(
        "rebnn", x, g, lambda method: method.shift.data.copy_(torch.from_numpy(shift))
    )
    np.testing.assert_array_equal(value, np_sign(x + shift))
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x + shift)), atol=1e-12)
