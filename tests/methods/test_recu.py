import numpy as np
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_sign,
    sample,
    weight_and_gradient,
)

PROGRESS = 0.5
A = (0.99 - 0.85) / (np.e - 1)
TAU = A * np.exp(PROGRESS) + 0.85 - A


def damped(x: np.ndarray) -> np.ndarray:
    """(x - mean) / sqrt(var + 1e-5) of each row."""
    axes = (1, 2, 3)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, ddof=1, keepdims=True) + 1e-5)


def test_clamped_tails_have_no_gradient_and_the_rest_passes() -> None:
    w, g = sample((4, 3, 3, 3))
    w *= 0.01  # as small as weight decay makes it: the release's 1e-5 beside the variance counts
    w[0, 0, 0] *= 8
    start = np.array([0.5, 1.0, 2.0, 0.1])

    def tune(method) -> None:
        method.set_progress(PROGRESS)
        method.alpha.start.copy_(torch.from_numpy(start))

    value, gradient = weight_and_gradient("recu", w, g, tune)
    v = 2 * np.sqrt(2) * damped(w)
    q = -np.abs(v).mean() * np.log(2 - 2 * TAU)
    alpha = start.reshape(4, 1, 1, 1)
    assert 0 < (np.abs(v) > q).sum() < v.size / 2
    np.testing.assert_allclose(value, alpha * np_sign(v))
    g_v = g * alpha * (np.abs(v) <= q)
    # With c = w - mean and s = sqrt(var + eps): d(c / s)/dw, the chain through the mean and through s.
    axes, n = (1, 2, 3), w[0].size
    c = w - w.mean(axes, keepdims=True)
    s = np.sqrt(w.var(axes, ddof=1, keepdims=True) + 1e-5)
    g_c = 2 * np.sqrt(2) * (g_v / s - c * (g_v * c).sum(axes, keepdims=True) / ((n - 1) * s**3))
    np.testing.assert_allclose(gradient, g_c - g_c.mean(axes, keepdims=True), rtol=1e-6, atol=1e-9)


def test_tau_rises_from_085_to_099() -> None:
    method = layer_of("recu", sample()[0]).binarizer
    for progress, tau in [(0.0, 0.85), (1.0, 0.99)]:
        method.set_progress(progress)
        np.testing.assert_allclose(method.tau, tau)


def test_activations_are_scaled_in_training_only() -> None:
    x, g = sample((2, 3, 4, 4))
    value, gradient = input_and_gradient("recu", 3 * x, g, lambda method: method.eval())
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(3 * x)), atol=1e-12)

    value, gradient = input_and_gradient("recu", 3 * x, g)
    np.testing.assert_array_equal(value, np_sign(x))
    axes = (1, 2, 3)
    std = np.sqrt((3 * x).var(axis=axes, ddof=1, keepdims=True) + 1e-5)
    v = 3 * x / std
    g_v = g * np.maximum(0, 2 - 2 * np.abs(v))
    # d std / dx = (x - mean) / ((n - 1) std)
    through_std = damped(3 * x) * (g_v * v).sum(axes, keepdims=True) / (x[0].size - 1)
    np.testing.assert_allclose(gradient, (g_v - through_std) / std, atol=1e-12)
