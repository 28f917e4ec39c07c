import numpy as np
import pytest
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_sign,
    np_standardize,
    sample,
    weight_and_gradient,
)

F = 20.0
START = np.array([0.5, 1.0, 2.0, 0.1])


@pytest.mark.parametrize("binary", [False, True])
def test_weights_are_a_sine_and_then_its_sign(binary) -> None:
    w, g = sample()
    w *= 0.1

    def tune(method) -> None:
        method.set_progress(0.7 if binary else 0.6)
        method.alpha.start.copy_(torch.from_numpy(START))

    value, gradient = weight_and_gradient("biper", w, g, tune)
    alpha, sine = START.reshape(4, 1, 1, 1), np.sin(F * w)
    np.testing.assert_allclose(value, alpha * (np_sign(sine) if binary else sine))
    np.testing.assert_allclose(gradient, g * alpha * F * np.cos(F * w), atol=1e-12)


def test_evaluated_with_signs_at_any_time() -> None:
    w, _ = sample()
    method = layer_of("biper", w).eval().binarizer
    value = method.weight(torch.from_numpy(w))
    expected = np_sign(np.sin(F * w)) * method.alpha.start.numpy().reshape(4, 1, 1, 1)
    np.testing.assert_allclose(value.detach(), expected)


def test_the_penalty_is_the_mean_squared_sine() -> None:
    w, _ = sample()
    method = layer_of("biper", w).binarizer
    for progress, tau in [(0.0, 0.037), (0.9, 0.0468)]:
        method.set_progress(progress)
        expected = tau * np.mean(0.5 - 0.5 * np.cos(2 * F * w))  # as the release writes it
        np.testing.assert_allclose(method.penalty(torch.from_numpy(w)), expected, rtol=1e-6)


def test_activations_are_divided_by_their_deviation_in_training_only() -> None:
    x, g = sample((2, 3, 4, 4))
    x *= 3
    value, gradient = input_and_gradient("biper", x, g, lambda method: method.eval())
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * np.maximum(0, 2 - 2 * np.abs(x)), atol=1e-12)
    value, gradient = input_and_gradient("biper", x, g)
    axes, n = (1, 2, 3), x[0].size
    std = np.sqrt(x.var(axis=axes, ddof=1, keepdims=True) + 1e-5)
    v = x / std
    g_v = g * np.maximum(0, 2 - 2 * np.abs(v))
    # d std / dx = (x - mean) / ((n - 1) std)
    centred = np_standardize(x) * x.std(axis=axes, ddof=1, keepdims=True) / std
    through_std = centred * (g_v * v).sum(axes, keepdims=True) / (n - 1)
    np.testing.assert_allclose(gradient, (g_v - through_std) / std, atol=1e-12)
