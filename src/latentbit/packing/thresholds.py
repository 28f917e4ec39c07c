"""Where a sign changes: what lies between a value and its sign is monotone, so one comparison replaces it.

    bit(x) = 1[chain(x) < t]  =  (x < threshold) xor flip

The threshold is found by bisection over every integer (or every float32) that x can be, evaluating the operators
that PyTorch evaluates, in float32. So the comparison decides as PyTorch does, rounding included.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from latentbit.lbit import Layer

Decision = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
FAR = np.float32(1e30)
"""Larger than any activation, small enough that no chain overflows."""


def bisect(decide: Decision, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray, NDArray]:
    """(threshold, flip) with decide(x) = (x < threshold) xor flip for all low <= x <= high, per channel.

    `decide` must be monotone in each channel, rising or falling.
    """
    first, last = decide(low), decide(high)
    below, reached = low.copy(), np.where(first == last, low, high)
    # decide(below) is first; decide(reached) is last: halve until they are neighbours.
    while np.any(reached - below > 1):
        middle = (below + reached) // 2
        same = decide(middle) == first
        below, reached = np.where(same, middle, below), np.where(same, reached, middle)
    # A constant is never below `low`, so flip alone decides; else bit is `first` below the threshold.
    return reached, np.where(first == last, first, ~first)


def _to_float(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    """Integers to float32 in the same order: neighbours become neighbours."""
    magnitude = np.abs(keys).astype(np.int32).view(np.float32)
    return np.where(keys < 0, -magnitude, magnitude)


def evaluate(chain: Sequence[Layer], x: NDArray[np.float32]) -> Tensor:
    """One value per channel through operators that act on each channel alone."""
    y = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))[None]
    for layer in chain:
        t = {role: torch.from_numpy(array.copy()) for role, array in layer.tensors.items()}
        if layer.op == "batch_norm":
            eps = layer.attributes["eps"]
            y = F.batch_norm(y, t["mean"], t["var"], t["gamma"], t["beta"], False, 0.0, eps)
        elif layer.op == "affine":
            y = y * t["scale"] + t["bias"]
        elif layer.op == "prelu":
            y = F.prelu(y, t["slope"])
        elif layer.op == "relu":
            y = F.relu(y)
        elif layer.op == "hardtanh":
            y = F.hardtanh(y)
        elif layer.op == "clamp":
            y = y.clamp(layer.attributes["low"], layer.attributes["high"])
    return y[0]


def _decision(chain: Sequence[Layer], sign: Layer, start: Callable[..., NDArray[np.float32]]) -> Decision:
    threshold = torch.from_numpy(sign.tensors.get("threshold", np.zeros(1, np.float32)))
    flip = sign.tensors.get("flip", np.zeros(1, np.uint8)).astype(np.bool_)

    def decide(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (evaluate(chain, start(keys)) < threshold).numpy() ^ flip

    return decide


def integer_threshold(binary: Layer, chain: Sequence[Layer], sign: Layer) -> dict[str, NDArray]:
    """Tensors threshold (I32) and flip (U8) of a binary layer that feeds only a sign."""
    scale, bias = binary.tensors["scale"], binary.tensors["bias"]

    def start(keys: NDArray[np.int64]) -> NDArray[np.float32]:
        y = scale * keys.astype(np.float32)
        return y + bias if bias.any() else y

    n_taps = np.full(len(scale), binary.tensors["signs"][0].size, np.int64)
    threshold, flip = bisect(_decision(chain, sign, start), -n_taps, n_taps)
    return {"threshold": threshold.astype(np.int32), "flip": flip.astype(np.uint8)}


def real_threshold(chain: Sequence[Layer], sign: Layer, n_channels: int) -> dict[str, NDArray]:
    """Tensors threshold (F32) and flip (U8) of a sign that takes over what stood before it."""
    far = np.full(n_channels, int(FAR.view(np.int32)), np.int64)
    threshold, flip = bisect(_decision(chain, sign, _to_float), -far, far)
    # No finite value is below this, so that a constant stays one.
    edge = np.where(threshold == -far, np.finfo(np.float32).min, _to_float(threshold))
    return {"threshold": edge.astype(np.float32), "flip": flip.astype(np.uint8)}
