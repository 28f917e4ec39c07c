import numpy as np
import torch
from methods.method_gradients import layer_of, np_sign, sample

LAMBDA = 1e-4


def test_gradients_are_those_of_the_projection_loss() -> None:
    c, g = sample()
    rng = np.random.default_rng(3)
    p = rng.uniform(0.5, 1.5, size=(3, 3))
    rate = 0.3
    layer = layer_of("pcnn", c)
    layer.binarizer.projection.data = torch.from_numpy(p)
    layer.binarizer.after_step(layer.weight, rate)
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(g))

    quantized = np.abs(c).mean() * np_sign(p.mean() * c)
    np.testing.assert_allclose(out.detach(), quantized)
    inside = np.abs(p * c) <= 1
    ahead = c + np.float32(rate) * g
    error = LAMBDA * (p * ahead - quantized)
    np.testing.assert_allclose(layer.weight.grad, g * inside * p + error * p, rtol=1e-6)
    expected = (g * inside * c + error * ahead).sum(axis=(0, 1))
    np.testing.assert_allclose(layer.binarizer.projection.grad, expected, rtol=1e-6)


def test_the_gradient_beside_the_task_is_that_of_the_printed_loss() -> None:
    """Differences of lambda/2 |C^ - P (C + eta d)|^2 with C^ and d held, against what the backward adds."""
    c, g = sample(seed=1)
    p, rate = np.full((3, 3), 0.8), 0.5
    layer = layer_of("pcnn", c)
    layer.binarizer.projection.data = torch.from_numpy(p)
    layer.binarizer.after_step(layer.weight, rate)
    layer.binarizer.weight(layer.weight).backward(torch.from_numpy(g))
    added = layer.weight.grad.numpy() - g * (np.abs(p * c) <= 1) * p
    quantized = np.abs(c).mean() * np_sign(c)

    def loss(values: np.ndarray) -> float:
        return LAMBDA / 2 * ((quantized - p * (values + rate * g)) ** 2).sum()

    step = np.zeros_like(c)
    step[1, 2, 0, 1] = 1e-3
    numeric = (loss(c + step) - loss(c - step)) / 2e-3
    np.testing.assert_allclose(added[1, 2, 0, 1], numeric, rtol=1e-6)
