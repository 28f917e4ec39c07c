import numpy as np
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_alpha,
    np_sign,
    sample,
    weight_and_gradient,
)

from latentbit.methods import OvSW

AXES = (1, 2, 3)


def test_filters_are_scaled_by_their_standardized_mean_size() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("ovsw", w, g)
    centred = w - w.mean(AXES, keepdims=True)
    s = np_alpha(centred / np.sqrt(centred.var(axis=AXES, ddof=1, keepdims=True) + 1e-5))
    np.testing.assert_allclose(value, s * np_sign(w))
    np.testing.assert_allclose(gradient, g * s)


def test_activations_are_divided_by_their_deviation_in_training_only() -> None:
    x, g = sample((2, 3, 4, 4))
    x *= 3
    _, gradient = input_and_gradient("ovsw", x, g, lambda method: method.eval())
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x)), atol=1e-12)
    value, gradient = input_and_gradient("ovsw", x, g)
    std = np.sqrt(x.var(axis=AXES, ddof=1, keepdims=True) + 1e-5)
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x / std)) / std, atol=1e-12)


def test_small_gradients_grow_and_silent_weights_decay_over_three_steps_of_an_optimizer() -> None:
    """The loop of the release in NumPy, beside ours: gradients are changed before SGD adds its own decay."""
    w, _ = sample()
    w[2] *= 1e-5  # a filter of almost nothing: its norm counts as 1e-3
    options = {"delta": 0.04, "decay": 0.3, "momentum": 0.9, "threshold": 0.05}
    layer = layer_of("ovsw", w)
    layer.binarizer = OvSW(**options).for_layer(layer).double()
    optimizer = torch.optim.SGD([layer.weight], lr=0.5, weight_decay=0.1)
    rng = np.random.default_rng(3)
    changes, previous = np.zeros_like(w), w.copy()
    scaled, silent = 0, []
    for _ in range(3):
        g = rng.normal(size=w.shape) * np.array([1.0, 1e-4, 1.0, 0.0]).reshape(4, 1, 1, 1)
        layer.weight.grad = torch.from_numpy(g.copy())
        optimizer.step()
        g_norm = np.maximum(np.sqrt((g**2).sum(AXES, keepdims=True)), 1e-6)
        w_norm = np.maximum(np.sqrt((w**2).sum(AXES, keepdims=True)), 1e-3)
        scaled += (g_norm / w_norm < 0.04).sum()
        g = np.where(g_norm / w_norm < 0.04, 0.04 * w_norm / g_norm * g, g)
        changes = 0.9 * changes + (1 - 0.9) * (np_sign(w) != np_sign(previous))
        silent.append((changes < 0.05).mean())
        g = g + 0.3 * (changes < 0.05) * w
        previous, w = w, w - 0.5 * (g + 0.1 * w)
        np.testing.assert_allclose(layer.weight.detach(), w, rtol=1e-9)
    assert scaled > 0 and silent[0] == 1 and 0 < silent[-1] < 1
