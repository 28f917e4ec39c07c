import numpy as np
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_alpha,
    np_sign,
    np_standardize,
    np_standardize_backward,
    sample,
)

from latentbit.methods.rbnn import nearly_square

PROGRESS = 0.6
T = 10 ** (-2 + 3 * PROGRESS)
K = max(1 / T, 1)


def slope(u: np.ndarray, t: float, k: float) -> np.ndarray:
    return k * np.maximum(0, np.sqrt(2) * t - t**2 * np.abs(u))


def test_filters_are_reshaped_nearly_square() -> None:
    assert [nearly_square(n) for n in (27, 144, 576, 7, 1)] == [(3, 9), (12, 12), (24, 24), (1, 7), (1, 1)]


def test_weight_mixes_the_filter_and_its_rotation() -> None:
    w, g = sample()
    layer = layer_of("rbnn", w)
    method = layer.binarizer
    method.set_progress(PROGRESS)
    beta = np.array([0.3, -0.8, 1.2, 2.0])
    method.beta.data = torch.from_numpy(beta)
    out = method.weight(layer.weight)
    out.backward(torch.from_numpy(g))

    v = np_standardize(w)
    left, right = method.left.numpy(), method.right.numpy()
    rotated = np.stack([left.T @ f.reshape(3, 9) @ right for f in v]).reshape(w.shape)
    share = np.abs(np.sin(beta)).reshape(4, 1, 1, 1)
    u = v + share * (rotated - v)
    np.testing.assert_allclose(out.detach(), np_alpha(w) * np_sign(u), atol=1e-6)
    g_u = g * np_alpha(w) * slope(u, T, K)
    np.testing.assert_allclose(
        layer.weight.grad, np_standardize_backward(w, (1 - share) * g_u), rtol=1e-5, atol=1e-7
    )
    g_beta = np.sign(np.sin(beta)) * np.cos(beta) * (g_u * (rotated - v)).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(method.beta.grad, g_beta, rtol=1e-5)


def test_w_has_no_gradient_where_beta_starts() -> None:
    w, g = sample()
    layer = layer_of("rbnn", w)
    layer.binarizer.weight(layer.weight).backward(torch.from_numpy(g))
    np.testing.assert_allclose(layer.weight.grad, 0, atol=1e-9)


def test_activations_lose_mean_and_scale_of_their_sample() -> None:
    x, g = sample((2, 3, 4, 4))
    x += np.array([1.0, -2.0]).reshape(2, 1, 1, 1)
    value, gradient = input_and_gradient("rbnn", x, g, lambda method: method.set_progress(PROGRESS))
    v = np_standardize(x)
    np.testing.assert_array_equal(value, np_sign(v))
    t = max(T, 1.0)
    np.testing.assert_allclose(gradient, np_standardize_backward(x, g * slope(v, t, 1.0)), atol=1e-7)


def test_refreshed_rotations_are_orthogonal_and_bring_filters_to_their_signs() -> None:
    w, _ = sample((16, 8, 3, 3))
    layer = layer_of("rbnn", w)
    method = layer.binarizer

    def distance() -> float:
        left, right = method.left.numpy(), method.right.numpy()
        rotated = np.stack([left.T @ f.reshape(8, 9) @ right for f in np_standardize(w)])
        return float(((rotated - np_sign(rotated)) ** 2).mean())

    before = distance()
    with torch.no_grad():
        method.after_step(layer.weight, 0.1)
    after = distance()
    assert after < before
    for rotation in (method.left, method.right):
        torch.testing.assert_close(
            rotation.T @ rotation, torch.eye(len(rotation), dtype=torch.float64), atol=1e-6, rtol=0
        )
    with torch.no_grad():
        method.after_step(layer.weight, 0.1)  # once per epoch only
    assert distance() == after
    method.set_progress(0.5)
    with torch.no_grad():
        method.after_step(layer.weight, 0.1)
    assert distance() < after
