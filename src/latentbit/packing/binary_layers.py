"""A binary layer becomes a sign and a binary conv or linear, from what its method deploys.

    y = scale * (sign(x - threshold) conv signs) + offset + bias

Methods with activations 0 and 1 have a border of bits that are off (-1), where a file has a border of nothing. The
difference depends on the place alone: the taps that exist, summed over input channels, seen by a map of ones.

Filters with a mean, and bits that are lifted, make four sums of one, over the taps inside the image:

    (bit + lift) (scale * sign + mean) = scale * sign * bit  +  mean * bit  +  lift * (scale * sign + mean)

a binary convolution; one with a filter of ones, then a product per channel; and what depends on the place alone.

A method with several bases is a sum of such layers over one input; those with equal thresholds share a sign.

What depends on the sample is made of pools and convolutions of ones in front of the sign, or beside the layer:

    centred   x - mean(x)               the mean of each map, the mean of those, spread over all pixels again
    cubic     x - cubic mean(x^3)       two products and the mean of each map, spread over its pixels
    windowed  y mean|x|                 |x| is a PReLU of slope -1; its mean under the filter is a convolution
"""

from __future__ import annotations

import math
import re
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

BORDER, MEANS, CENTRE, WINDOW = ".border", ".means", ".centre", ".window"
"""End the names of real layers that belong to a binary one: what its border adds, its filters' means, the mean of a
sample, the mean input under its filter."""
SIGNS = ".signs"
"""Ends the names of real layers that stand for one with binary weights and real inputs."""

STILL: dict[str, Any] = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1]}
"""Of a convolution that looks at one pixel."""


def is_exact(name: str) -> bool:
    """Whether this layer keeps its 32 bits whatever other real layers are stored in."""
    return re.sub(r"@\d+$", "", name).endswith((BORDER, MEANS, CENTRE, WINDOW))


def has_signs(name: str) -> bool:
    """Whether every weight of this layer is plus or minus one number per output."""
    return re.sub(r"@\d+$", "", name).endswith(SIGNS)


def add_binary(graph: Graph, op: str, node: torch.fx.Node, source: str, attributes: dict[str, Any]) -> str:
    """Add the layers of one binary module; `op` is "conv" or "linear". Returns the name of the last."""
    path = graph.path(node)
    first, *others = _deploy(path, graph.binary[path])
    borders: list[tuple[str, NDArray[np.float32]]] = []
    y = _add_layer(graph, op, node, source, first, graph.arguments(node)["bias"], attributes, borders)
    for deployed in others:
        part = _add_layer(graph, op, node, source, deployed, None, attributes, borders)
        y = graph.add("add", node, [y, part], name=f"{path}.sum")
    if borders:  # one for all: each is a convolution of the same map of ones
        bits, taps = borders[0][0], np.stack([taps for _, taps in borders]).sum(axis=0)
        border = _add_of_ones(graph, node, bits, taps, attributes)
        y = graph.add("add", node, [y, border], name=f"{path}.sum")
    return y


def _add_layer(
    graph: Graph,
    op: str,
    node: torch.fx.Node,
    source: str,
    deployed: Deployed,
    bias: Tensor | None,
    attributes: dict[str, Any],
    borders: list[tuple[str, NDArray[np.float32]]],
) -> str:
    """One of the layers that a binary module is the sum of; its bits and what a border still adds go to `borders`."""
    path = graph.path(node)
    signs = deployed.signs.detach().cpu().to(torch.int8).numpy()
    signs = signs[:, :, None] if signs.ndim == 3 else signs  # a 1-D filter has one row
    n_out, n_in = len(signs), graph.shape(source)[0]
    scale = _per_channel(deployed.scale, n_out, path, "scales")
    total = np.zeros(n_out, np.float32) if bias is None else real_vector(bias.cpu())
    if deployed.offset is not None:
        total = total + _per_channel(deployed.offset, n_out, path, "offsets")
    if deployed.real_input:
        weight = scale.reshape(-1, *[1] * (signs.ndim - 1)) * signs
        return graph.add(
            op, node, [source], {"weight": weight, "bias": total}, name=f"{path}{SIGNS}", **attributes
        )
    threshold = _per_channel(deployed.threshold, n_in, path, "thresholds")
    sign_tensors: dict[str, NDArray] = {"threshold": threshold} if threshold.any() else {}
    if deployed.flip is not None and bool(deployed.flip.any()):
        sign_tensors["flip"] = _per_channel(deployed.flip, n_in, path, "flips").astype(np.uint8)
    read = source
    if deployed.centred:
        read = _add_centred(graph, node, read)
    if deployed.cubic is not None:
        read = _add_cubic(graph, node, read, _per_channel(deployed.cubic, n_in, path, "cubic slopes"))
    bits = graph.add("sign", node, [read], sign_tensors, graph.shape(source), name=f"{path}.sign")
    tensors = {"signs": signs, "scale": scale, "bias": total}
    if deployed.windowed:
        return _add_windowed(graph, op, node, source, bits, tensors, attributes)
    if deployed.mean is not None:
        mean = _per_channel(deployed.mean, n_out, path, "means")
        lift = 0.0 if deployed.lift is None else float(deployed.lift)
        return _add_with_means(graph, op, node, bits, tensors, mean, lift, attributes)
    if op == "linear":
        return graph.add("binary_linear", node, [bits], tensors, in_features=n_in)
    if deployed.pad == 0 or not any(attributes["padding"]):
        return graph.add("binary_conv", node, [bits], tensors, in_channels=n_in, **attributes)
    # y with -1 outside = y with nothing outside - scale * (all taps - taps that exist)
    taps = scale[:, None, None, None] * signs.sum(axis=1, keepdims=True, dtype=np.float32)
    borders.append((bits, taps))
    tensors["bias"] = total - taps.sum(axis=(1, 2, 3))
    return graph.add("binary_conv", node, [bits], tensors, in_channels=n_in, **attributes)


def _add_with_means(
    graph: Graph,
    op: str,
    node: torch.fx.Node,
    bits: str,
    tensors: dict[str, NDArray],
    mean: NDArray[np.float32],
    lift: float,
    attributes: dict[str, Any],
) -> str:
    """The sums of the four products, each where it belongs."""
    path, signs, scale = graph.path(node), tensors["signs"], tensors["scale"]
    n_out, per_group, *kernel = signs.shape
    spread = (n_out, 1, *(1 for _ in kernel))
    lifted = np.float32(lift) * (
        scale.reshape(spread) * signs.sum(axis=1, keepdims=True, dtype=np.float32)
        + per_group * mean.reshape(spread)
    )
    placeless = op == "linear" or not any(attributes["padding"])
    if placeless:
        tensors["bias"] = tensors["bias"] + lifted.reshape(n_out, -1).sum(axis=1)
    groups = 1 if op == "linear" else attributes["groups"]
    ones = {
        "signs": np.ones((groups, per_group, *kernel), np.int8),
        "scale": np.ones(groups, np.float32),
        "bias": np.zeros(groups, np.float32),
    }
    product = {"weight": mean.reshape(spread if op == "linear" else (n_out, 1, 1, 1))}
    product["bias"] = np.zeros(n_out, np.float32)
    if op == "linear":
        given: dict[str, Any] = {"in_features": per_group}
        y = graph.add("binary_linear", node, [bits], tensors, **given)
        summed = graph.add("binary_linear", node, [bits], ones, (1,), name=f"{path}.total", **given)
        means = graph.add("linear", node, [summed], product, name=f"{path}{MEANS}")
    else:
        given = {"in_channels": graph.shape(bits)[0], **attributes}
        y = graph.add("binary_conv", node, [bits], tensors, **given)
        shape = (groups, *graph.shape(y)[1:])
        summed = graph.add("binary_conv", node, [bits], ones, shape, name=f"{path}.total", **given)
        means = graph.add("conv", node, [summed], product, name=f"{path}{MEANS}", **STILL, groups=groups)
    y = graph.add("add", node, [y, means], name=f"{path}.sum")
    if not placeless and lift:
        border = _add_of_ones(graph, node, bits, lifted, attributes)
        y = graph.add("add", node, [y, border], name=f"{path}.sum")
    return y


def _add_windowed(
    graph: Graph,
    op: str,
    node: torch.fx.Node,
    source: str,
    bits: str,
    tensors: dict[str, NDArray],
    attributes: dict[str, Any],
) -> str:
    """The layer without its bias, times the mean of |x| under the filter, plus the bias."""
    path, n_in, shape = graph.path(node), graph.shape(source)[0], graph.shape(source)
    n_out, per_group, *kernel = tensors["signs"].shape
    bias, tensors["bias"] = tensors["bias"], np.zeros(n_out, np.float32)
    size = graph.add(
        "prelu", node, [source], {"slope": -np.ones(n_in, np.float32)}, shape, name=f"{path}.abs"
    )
    groups = 1 if op == "linear" else attributes["groups"]
    # One number per pixel and group, then as many copies as there are outputs.
    mean = _all_alike((groups, per_group, *kernel), 1 / (per_group * math.prod(kernel)))
    copies = _all_alike((n_out, 1, *(1 for _ in kernel)), 1.0)
    if op == "linear":
        y = graph.add("binary_linear", node, [bits], tensors, in_features=n_in)
        window = graph.add("linear", node, [size], mean, (1,), name=f"{path}{WINDOW}")
        window = graph.add("linear", node, [window], copies, name=f"{path}{WINDOW}")
    else:
        y = graph.add("binary_conv", node, [bits], tensors, in_channels=n_in, **attributes)
        shape = (groups, *graph.shape(y)[1:])
        window = graph.add("conv", node, [size], mean, shape, name=f"{path}{WINDOW}", **attributes)
        window = graph.add("conv", node, [window], copies, name=f"{path}{WINDOW}", **STILL, groups=groups)
    y = graph.add("multiply", node, [y, window], name=f"{path}.product")
    if not bias.any():
        return y
    tensors = {"scale": np.ones(n_out, np.float32), "bias": bias}
    return graph.add("affine", node, [y], tensors, name=f"{path}.bias")


def _add_centred(graph: Graph, node: torch.fx.Node, source: str) -> str:
    """x minus its mean over the sample: the mean of the means of its maps."""
    path, (n, *size) = graph.path(node), graph.shape(source)
    name, mean, pixel = f"{path}{CENTRE}", source, [1 for _ in size]
    op, still = ("conv", {**STILL, "groups": 1}) if size else ("linear", {})
    if size:
        mean = _add_pool(graph, node, source)
    # From all channels to one and back: two small layers instead of one of n x n.
    mean = graph.add(op, node, [mean], _all_alike((1, n, *pixel), -1 / n), (1, *pixel), name=name, **still)
    mean = graph.add(op, node, [mean], _all_alike((n, 1, *pixel), 1.0), (n, *pixel), name=name, **still)
    return _add_spread(graph, node, source, mean)


def _add_cubic(graph: Graph, node: torch.fx.Node, source: str, slope: NDArray[np.float32]) -> str:
    """x minus slope times the mean of x^3 over its map."""
    path, shape = graph.path(node), graph.shape(source)
    cube = graph.add("multiply", node, [source, source], {}, shape, name=f"{path}.square")
    cube = graph.add("multiply", node, [cube, source], {}, shape, name=f"{path}.cube")
    if len(shape) > 1:
        cube = _add_pool(graph, node, cube)
    tensors = {"scale": -slope, "bias": np.zeros(len(slope), np.float32)}
    moved = graph.add("affine", node, [cube], tensors, graph.shape(cube), name=f"{path}.moves")
    return _add_spread(graph, node, source, moved)


def _add_pool(graph: Graph, node: torch.fx.Node, source: str) -> str:
    """The mean of each map, as a map of one pixel."""
    n, *size = graph.shape(source)
    whole = {"kernel": size, "stride": size, "padding": [0, 0, 0, 0], "count_include_pad": False}
    return graph.add("avg_pool", node, [source], {}, (n, 1, 1), name=f"{graph.path(node)}.pool", **whole)


def _add_spread(graph: Graph, node: torch.fx.Node, source: str, per_map: str) -> str:
    """x plus one number per map."""
    path, (n, *size) = graph.path(node), graph.shape(source)
    if size:
        # A map of ones times the number: ONNX and OpenVINO exports have these ops, and no resize.
        one = {"scale": np.zeros(n, np.float32), "bias": np.ones(n, np.float32)}
        ones = graph.add("affine", node, [source], one, (n, *size), name=f"{path}.ones")
        per_map = graph.add("multiply", node, [ones, per_map], {}, (n, *size), name=f"{path}.spread")
    return graph.add("add", node, [source, per_map], {}, (n, *size), name=f"{path}.moved")


def _all_alike(shape: tuple[int, ...], weight: float) -> dict[str, NDArray]:
    """Tensors of a real layer without a bias, all of whose weights are the same."""
    return {"weight": np.full(shape, weight, np.float32), "bias": np.zeros(shape[0], np.float32)}


def _add_of_ones(
    graph: Graph, node: torch.fx.Node, bits: str, taps: NDArray[np.float32], attributes: dict[str, Any]
) -> str:
    """What `taps` see of a map of ones with nothing around it: a constant, but for the border."""
    path = graph.path(node)
    n_in, *size = graph.shape(bits)
    one = {
        "signs": np.ones((1, n_in, 1, 1), np.int8),
        "scale": np.zeros(1, np.float32),
        "bias": np.ones(1, np.float32),
    }
    given = {**STILL, "groups": 1, "in_channels": n_in}
    ones = graph.add("binary_conv", node, [bits], one, (1, *size), name=f"{path}.ones", **given)
    weight = {"weight": taps, "bias": np.zeros(len(taps), np.float32)}
    return graph.add("conv", node, [ones], weight, name=f"{path}{BORDER}", **{**attributes, "groups": 1})


def _deploy(path: str, layer: Binary) -> list[Deployed]:
    """The layers whose sum this one is, mostly one."""
    try:
        with torch.no_grad():
            deployed = layer.binarizer.deploy(layer.weight)
    except NotDeployable as error:
        raise CannotPack(f"{path}: {error}") from None
    parts = [deployed, *deployed.plus]
    if not all(bool((part.signs.abs() == 1).all()) for part in parts):
        method = type(layer.binarizer).__name__
        raise CannotPack(f"{path}: method {method} deploys weights that are not +1 or -1")
    return parts


def _per_channel(tensor: Tensor, n: int, path: str, what: str) -> NDArray[np.float32]:
    vector = real_vector(tensor.detach().float().cpu())
    if vector.size not in (1, n):
        raise CannotPack(f"{path}: {vector.size} {what} for {n} channels")
    return np.ascontiguousarray(np.broadcast_to(vector, (n,)))
