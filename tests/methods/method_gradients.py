"""Forward and gradient of one layer's weight and input binarization, computed by the torch code under test."""

from collections.abc import Callable

import numpy as np
import torch

from latentbit import methods
from latentbit.layers import BinaryConv2d
from latentbit.methods.parts.binarizer import Binarizer

Tune = Callable[[Binarizer], None]
"""Brings a method away from where it starts: sets its schedule or its parameters."""


def layer_of(name: str, w: np.ndarray, **options: int) -> BinaryConv2d:
    """A binary convolution over these weights, in float64."""
    conv = torch.nn.Conv2d(w.shape[1], w.shape[0], w.shape[2], bias=False, dtype=torch.float64, **options)
    conv.weight.data = torch.from_numpy(w.copy())
    return BinaryConv2d.from_float(conv, methods.create(name))


def weight_and_gradient(
    name: str, w: np.ndarray, upstream: np.ndarray, tune: Tune = lambda method: None
) -> tuple[np.ndarray, np.ndarray]:
    """alpha * B and dL/dW for dL/d(alpha B) = upstream, in float64."""
    layer = layer_of(name, w)
    tune(layer.binarizer)
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(upstream))
    return out.detach().numpy(), layer.weight.grad.numpy()


def input_and_gradient(
    name: str, x: np.ndarray, upstream: np.ndarray, tune: Tune = lambda method: None
) -> tuple[np.ndarray, np.ndarray]:
    """sign(x) and dL/dx."""
    layer = layer_of(name, np.ones((4, x.shape[1], 3, 3)))
    tune(layer.binarizer)
    t = torch.from_numpy(x.copy()).requires_grad_()
    out = layer.binarizer.input(t)
    out.backward(torch.from_numpy(upstream))
    return out.detach().numpy(), t.grad.numpy()


def sample(shape: tuple[int, ...] = (4, 3, 3, 3), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values on both sides of the clip at 1, and an upstream gradient."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape), rng.normal(size=shape)


def np_sign(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, -1.0, 1.0)


def np_alpha(w: np.ndarray) -> np.ndarray:
    return np.abs(w).mean(axis=(1, 2, 3), keepdims=True)


def np_standardize(w: np.ndarray, ddof: int = 1) -> np.ndarray:
    std = w.std(axis=(1, 2, 3), ddof=ddof, keepdims=True)
    return (w - w.mean(axis=(1, 2, 3), keepdims=True)) / std


def np_standardize_backward(w: np.ndarray, g: np.ndarray, ddof: int = 1) -> np.ndarray:
    """dL/dw for dL/dv = g, v = (w - mean) / std:  (g - mean g - v sum(g v) / (n - ddof)) / std."""
    axes = (1, 2, 3)
    v, n = np_standardize(w, ddof), w[0].size
    projected = v * (g * v).sum(axes, keepdims=True) / (n - ddof)
    return (g - g.mean(axes, keepdims=True) - projected) / w.std(axis=axes, ddof=ddof, keepdims=True)


def np_conv(x: np.ndarray, w: np.ndarray, padding: int = 0) -> np.ndarray:
    """Cross-correlation by its definition, stride 1."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    k = w.shape[2]
    rows, columns = x.shape[2] - k + 1, x.shape[3] - k + 1
    y = np.zeros((len(x), len(w), rows, columns))
    for i in range(rows):
        for j in range(columns):
            y[:, :, i, j] = np.einsum("nckl,ockl->no", x[:, :, i : i + k, j : j + k], w)
    return y
