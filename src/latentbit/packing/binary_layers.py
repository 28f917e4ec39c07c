"""A binary layer becomes a sign and a binary conv or linear, from what its method deploys.

    y = scale * (sign(x - threshold) conv signs) + offset + bias

Methods with activations 0 and 1 have a border of bits that are off (-1), where a file has a border of nothing. The
difference depends on the place alone: the taps that exist, summed over input channels, seen by a map of ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from latentbit.layers import Binary
from latentbit.lbit import real_vector
from latentbit.methods.parts.binarizer import Deployed, NotDeployable
from latentbit.packing.operators import CannotPack

if TYPE_CHECKING:
    from latentbit.packing.trace import Graph

BORDER = ".border"
"""Ends the name of the convolution that accounts for a border of -1."""


def add_binary(graph: Graph, op: str, node: torch.fx.Node, source: str, attributes: dict[str, Any]) -> str:
    """Add the layers of one binary module; `op` is "conv" or "linear". Returns the name of the last."""
    path = graph.path(node)
    layer, bias = graph.binary[path], graph.arguments(node)["bias"]
    deployed = _deploy(path, layer)
    signs = deployed.signs.detach().cpu().to(torch.int8).numpy()
    signs = signs[:, :, None] if signs.ndim == 3 else signs  # a 1-D filter has one row
    n_out, n_in = len(signs), graph.shape(source)[0]
    threshold = _per_channel(deployed.threshold, n_in, path, "thresholds")
    sign_tensors = {"threshold": threshold} if threshold.any() else {}
    bits = graph.add("sign", node, [source], sign_tensors, graph.shape(source), name=f"{path}.sign")
    scale = _per_channel(deployed.scale, n_out, path, "scales")
    total = np.zeros(n_out, np.float32) if bias is None else real_vector(bias.cpu())
    if deployed.offset is not None:
        total = total + _per_channel(deployed.offset, n_out, path, "offsets")
    tensors = {"signs": signs, "scale": scale, "bias": total}
    if op == "linear":
        return graph.add("binary_linear", node, [bits], tensors, in_features=n_in)
    if deployed.pad == 0 or not any(attributes["padding"]):
        return graph.add("binary_conv", node, [bits], tensors, in_channels=n_in, **attributes)
    return _add_border(graph, node, bits, tensors, attributes)


def _add_border(
    graph: Graph, node: torch.fx.Node, bits: str, tensors: dict[str, NDArray], attributes: dict[str, Any]
) -> str:
    """y with -1 outside = y with nothing outside - scale * (all taps - taps that exist)."""
    path, signs, scale = graph.path(node), tensors["signs"], tensors["scale"]
    n_in, *size = graph.shape(bits)
    taps = scale[:, None, None, None] * signs.sum(axis=1, keepdims=True, dtype=np.float32)
    tensors["bias"] = tensors["bias"] - taps.sum(axis=(1, 2, 3))
    y = graph.add("binary_conv", node, [bits], tensors, in_channels=n_in, **attributes)
    one = {
        "signs": np.ones((1, n_in, 1, 1), np.int8),
        "scale": np.zeros(1, np.float32),
        "bias": np.ones(1, np.float32),
    }
    still = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1, "in_channels": n_in}
    ones = graph.add("binary_conv", node, [bits], one, (1, *size), name=f"{path}.ones", **still)
    weight = {"weight": taps, "bias": np.zeros(len(taps), np.float32)}
    border = graph.add("conv", node, [ones], weight, name=f"{path}{BORDER}", **{**attributes, "groups": 1})
    return graph.add("add", node, [y, border], name=f"{path}.sum")


def _deploy(path: str, layer: Binary) -> Deployed:
    try:
        with torch.no_grad():
            deployed = layer.binarizer.deploy(layer.weight)
    except NotDeployable as error:
        raise CannotPack(f"{path}: {error}") from None
    if not bool((deployed.signs.abs() == 1).all()):
        method = type(layer.binarizer).__name__
        raise CannotPack(f"{path}: method {method} deploys weights that are not +1 or -1")
    return deployed


def _per_channel(tensor: Tensor, n: int, path: str, what: str) -> NDArray[np.float32]:
    vector = real_vector(tensor.detach().float().cpu())
    if vector.size not in (1, n):
        raise CannotPack(f"{path}: {vector.size} {what} for {n} channels")
    return np.ascontiguousarray(np.broadcast_to(vector, (n,)))
