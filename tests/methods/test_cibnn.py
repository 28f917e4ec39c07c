import numpy as np
import torch
from methods.method_gradients import layer_of, np_conv, np_sign, sample


def test_decided_sources_correct_their_target() -> None:
    w, _ = sample((6, 4, 3, 3))
    x, _ = sample((2, 4, 5, 5), seed=1)
    layer = layer_of("cibnn", w, padding=1)
    source, excites = layer.binarizer.source.numpy(), layer.binarizer.excites.numpy()
    assert sorted(source) == list(range(6)) and all(source != np.arange(6))
    t, c = 200 / 720 * 36, 100 / 720 * 36
    y = np_conv(np_sign(x), np_sign(w), padding=1)
    expected = y.copy()
    for target in range(6):
        high, low = y[:, source[target]] >= t, y[:, source[target]] <= -t
        if excites[target]:
            expected[:, target] += c * (high.astype(float) - low)
        else:
            expected[:, target] -= c * (high.astype(float) + low)
    assert (expected != y).any()
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), expected)


def test_the_gradient_ignores_the_correction() -> None:
    w, _ = sample((6, 4, 3, 3))
    x, _ = sample((1, 4, 3, 3), seed=1)
    g = np.random.default_rng(2).normal(size=6)
    layer = layer_of("cibnn", w)
    layer(torch.from_numpy(x)).backward(torch.from_numpy(g).view(1, 6, 1, 1))
    expected = g.reshape(6, 1, 1, 1) * np_sign(x) * (np.abs(w) <= 1)
    np.testing.assert_allclose(layer.weight.grad, expected)
