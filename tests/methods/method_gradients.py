"""Forward and gradient of one layer's weight and input binarization, computed by the torch code under test."""

import numpy as np
import torch

from latentbit import methods
from latentbit.layers import BinaryConv2d


def weight_and_gradient(name: str, w: np.ndarray, upstream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """alpha * B and dL/dW for dL/d(alpha B) = upstream, in float64."""
    conv = torch.nn.Conv2d(w.shape[1], w.shape[0], w.shape[2], bias=False, dtype=torch.float64)
    conv.weight.data = torch.from_numpy(w.copy())
    layer = BinaryConv2d.from_float(conv, methods.find(name))
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(upstream))
    return out.detach().numpy(), layer.weight.grad.numpy()


def input_and_gradient(name: str, x: np.ndarray, upstream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sign(x) and dL/dx."""
    layer = BinaryConv2d.from_float(torch.nn.Conv2d(x.shape[1], 1, 1), methods.find(name)).double()
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
