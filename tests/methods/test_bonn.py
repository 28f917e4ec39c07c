import numpy as np
import torch
from methods.method_gradients import layer_of, np_sign, sample

LAMBDA, NU = 1e-4, 1e-2


def test_weight_is_the_sign_over_the_mean_of_v() -> None:
    k, g = sample()
    rng = np.random.default_rng(2)
    v = rng.uniform(0.5, 2, size=k.shape[1:])
    layer = layer_of("bonn", k)
    layer.binarizer.v.data = torch.from_numpy(v)
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(g))
    np.testing.assert_allclose(out.detach(), np_sign(k) / v.mean())
    inside = np.abs(v * k) <= 1
    np.testing.assert_allclose(layer.weight.grad, g / v.mean() * inside * v)
    through_mean = -(g * np_sign(k)).sum() / v.mean() ** 2 / v.size
    np.testing.assert_allclose(layer.binarizer.v.grad, (g / v.mean() * inside * k).sum(0) + through_mean)


def test_penalty_is_the_printed_loss_with_its_gradient() -> None:
    k, _ = sample()
    layer = layer_of("bonn", k)
    method = layer.binarizer
    mu, s2 = np.array([0.5, 1.0, 0.8, 0.7]), np.array([0.2, 0.3, 0.5, 1.0])
    method.mu.data, method.log_variance.data = torch.from_numpy(mu), torch.from_numpy(np.log(s2))
    v = np.random.default_rng(2).uniform(0.5, 2, size=k.shape[1:])
    method.v.data = torch.from_numpy(v)
    penalty = method.penalty(layer.weight)
    penalty.backward()
    expected = ((np_sign(k) - v * k) ** 2).sum()
    for f, m, s in zip(k, mu, s2, strict=True):
        positive, negative = f[f >= 0], f[f < 0]
        prior = ((positive - m) ** 2 / s).sum() + ((negative + m) ** 2 / s).sum() + f.size * np.log(s)
        expected += NU * prior
    np.testing.assert_allclose(penalty.detach(), LAMBDA / 2 * expected)
    mu, s2 = mu.reshape(4, 1, 1, 1), s2.reshape(4, 1, 1, 1)
    gradient = LAMBDA * ((v * k - np_sign(k)) * v + NU * (k - np_sign(k) * mu) / s2)
    np.testing.assert_allclose(layer.weight.grad, gradient, rtol=1e-9)
    gradient = -LAMBDA * NU * ((np.abs(k) - mu) / s2).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(method.mu.grad, gradient)


def test_modes_start_at_those_of_the_filters() -> None:
    k, _ = sample()
    method = layer_of("bonn", k).binarizer
    np.testing.assert_allclose(method.mu.detach(), np.abs(k).mean(axis=(1, 2, 3)))
    np.testing.assert_allclose(method.log_variance.detach().exp(), np.abs(k).var(axis=(1, 2, 3)))
    np.testing.assert_allclose(method.v.detach(), np.full(k.shape[1:], 1 / np.abs(k).mean()))
