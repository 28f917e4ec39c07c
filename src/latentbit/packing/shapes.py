"""Operators whose result has another shape: convolutions, pools, resizing, reordering. operators.py lists them.

A packed network has vectors (C) and maps (C, H, W); a tensor (C, L) is a map of one row, and 1-D layers are layers
whose kernel has one row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from latentbit.lbit import real_vector

if TYPE_CHECKING:
    from latentbit.packing.trace import Graph

Node = torch.fx.Node


def as_value(sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape that a packed network gives a tensor of these sizes, the batch left out."""
    return (sizes[0], 1, sizes[1]) if len(sizes) == 2 else tuple(sizes)


def first(graph: Graph, node: Node) -> str:
    """Operators that change nothing at inference, and taking the only result of several."""
    return graph.value(node.args[0], node)


def _map(graph: Graph, node: Node, axes: int) -> str:
    """The first input, a map; `axes` is how many the operator slides over."""
    source = node.args[0]
    if not isinstance(source, Node) or source.meta["val"].dim() != axes + 2:
        graph.refuse(node, "works on something that is not a batch of maps")
    return graph.value(source, node)


def _sizes(node: Node) -> list[int]:
    """Height and width of the result."""
    return list(as_value(node.meta["val"].shape[1:])[1:])


def _pair(value: Any, axes: int, neutral: int) -> list[int]:
    """A number, one per axis, or one for all, as numbers for height and width."""
    values = [value] if isinstance(value, int) else list(value)
    values = [int(v) for v in (values * axes if len(values) == 1 else values)]
    return values if axes == 2 else [neutral, *values]


def _conv(graph: Graph, node: Node, axes: int) -> str:
    a, source = graph.arguments(node), _map(graph, node, axes)
    if not isinstance(a["weight"], Tensor):
        graph.refuse(node, "has weights that depend on the input")
    dilation, kernel = _pair(a["dilation"], axes, 1), _pair(a["weight"].shape[2:], axes, 1)
    if isinstance(a["padding"], str):
        total = [d * (k - 1) if a["padding"] == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
        padding = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        padding = _pair(a["padding"], axes, 0) * 2
    stride = _pair(a["stride"], axes, 1)
    given: dict[str, Any] = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": int(a["groups"]),
    }
    return graph.add_weighted("conv", node, source, **given)


def conv1d(graph: Graph, node: Node) -> str:
    return _conv(graph, node, 1)


def conv2d(graph: Graph, node: Node) -> str:
    return _conv(graph, node, 2)


def conv_transpose2d(graph: Graph, node: Node) -> str:
    a, source = graph.arguments(node), _map(graph, node, 2)
    weight, groups = a["weight"], int(a["groups"])
    if not isinstance(weight, Tensor):
        graph.refuse(node, "has weights that depend on the input")
    n_in, per_group, *kernel = weight.shape
    n_out = groups * per_group
    # To the layout of a convolution: outputs first, the inputs of one group.
    turned = weight.reshape(groups, n_in // groups, per_group, *kernel).transpose(1, 2)
    tensors = {
        "weight": turned.reshape(n_out, n_in // groups, *kernel).float().cpu().numpy().copy(),
        "bias": np.zeros(n_out, np.float32) if a["bias"] is None else real_vector(a["bias"].cpu()),
    }
    given: dict[str, Any] = {key: _pair(a[key], 2, 1) for key in ("stride", "padding", "dilation")}
    return graph.add("conv_transpose", node, [source], tensors, groups=groups, size=_sizes(node), **given)


def _upsample(graph: Graph, node: Node, linear: bool) -> str:
    """F.interpolate: for each output row and column, which input it reads and how much of the next one."""
    a = graph.arguments(node)
    source = _map(graph, node, 2)
    scales = a.get("scale_factors") or (a.get("scales_h"), a.get("scales_w"))
    tensors = {}
    for role, n_in, n_out, scale in zip(
        ("row", "column"), graph.shape(source)[1:], _sizes(node), scales, strict=True
    ):
        at = _source_places(n_in, n_out, scale, linear, bool(a.get("align_corners")))
        before = np.minimum(np.floor(at), n_in - 1)
        tensors[role] = before.astype(np.int32)
        tensors[f"{role}_share"] = np.clip(at - before, 0, 1) if linear else np.zeros(n_out, np.float32)
    return graph.add("resize", node, [source], tensors)


def _source_places(n_in: int, n_out: int, scale: float | None, linear: bool, corners: bool) -> np.ndarray:
    """Where in the input every output lies, in float32 as PyTorch computes it."""
    at = np.arange(n_out, dtype=np.float32)
    if corners:
        return at * np.float32((n_in - 1) / (n_out - 1) if n_out > 1 else 0)
    step = np.float32(1 / scale if scale else n_in / n_out)
    return np.maximum(step * (at + np.float32(0.5)) - np.float32(0.5), 0) if linear else at * step


def upsample_nearest2d(graph: Graph, node: Node) -> str:
    return _upsample(graph, node, linear=False)


def upsample_bilinear2d(graph: Graph, node: Node) -> str:
    return _upsample(graph, node, linear=True)


def _pool(graph: Graph, node: Node, op: str, axes: int) -> str:
    a, source = graph.arguments(node), _map(graph, node, axes)
    if _pair(a.get("dilation", 1), axes, 1) != [1, 1]:
        graph.refuse(node, "is dilated: leave dilation at 1")
    if a.get("divisor_override") is not None:
        graph.refuse(node, "uses divisor_override: leave it at None")
    kernel = _pair(a["kernel_size"], axes, 1)
    stride = _pair(a["stride"], axes, 1) if a["stride"] else kernel
    padding = _pair(a["padding"], axes, 0) * 2
    extra: dict[str, Any] = {"count_include_pad": bool(a["count_include_pad"])} if op == "avg_pool" else {}
    sizes, outs = graph.shape(source)[1:], _sizes(node)
    for axis in (0, 1):
        # ceil_mode is padding at the far end, which an average must not count.
        missing = (outs[axis] - 1) * stride[axis] + kernel[axis] - sizes[axis] - 2 * padding[axis]
        if missing > 0 and extra.get("count_include_pad"):
            if any(padding):
                graph.refuse(node, "uses ceil_mode with padding that counts: set count_include_pad=False")
            extra["count_include_pad"] = False
        padding[axis + 2] += max(0, missing)
    return graph.add(op, node, [source], kernel=kernel, stride=stride, padding=padding, **extra)


def max_pool1d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "max_pool", 1)


def max_pool2d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "max_pool", 2)


def avg_pool1d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "avg_pool", 1)


def avg_pool2d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "avg_pool", 2)


def _average(graph: Graph, node: Node, source: str, kernel: list[int]) -> str:
    if kernel == [1, 1]:
        return source
    shape = graph.shape(source)
    out = (shape[0], shape[1] // kernel[0], shape[2] // kernel[1])
    window: dict[str, Any] = {
        "kernel": kernel,
        "stride": kernel,
        "padding": [0, 0, 0, 0],
        "count_include_pad": True,
    }
    return graph.add("avg_pool", node, [source], shape=out, **window)


def adaptive_avg_pool(graph: Graph, node: Node) -> str:
    source, wanted = _map(graph, node, node.meta["val"].dim() - 2), _sizes(node)
    sizes = graph.shape(source)[1:]
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        return graph.add("adaptive_avg_pool", node, [source], size=wanted)
    return _average(graph, node, source, [size // out for size, out in zip(sizes, wanted, strict=True)])


def mean(graph: Graph, node: Node) -> str:
    source, a = first(graph, node), graph.arguments(node)
    rank = node.args[0].meta["val"].dim()  # type: ignore[union-attr]
    if rank < 3 or sorted(dim % rank for dim in a["dim"] or ()) != list(range(2, rank)):
        graph.refuse(node, "is an average over something other than height and width")
    pooled = _average(graph, node, source, list(graph.shape(source)[1:]))
    return pooled if a["keepdim"] else graph.add("flatten", node, [pooled])


def reshape(graph: Graph, node: Node) -> str:
    source = first(graph, node)
    before, (n, *rest) = graph.shape(source), node.meta["val"].shape
    if n != 2 or len(rest) > 3:
        what = "mixes the images of a batch" if n != 2 else "has more axes than a packed network"
        graph.refuse(node, f"makes {list(rest)} of {list(before)}, which {what}")
    after = as_value(rest)
    if after == before:
        return source
    if len(after) == 1:
        return graph.add("flatten", node, [source], shape=after)
    return graph.add("reshape", node, [source], shape=after, size=list(after))


def pad(graph: Graph, node: Node) -> str:
    """Channels of zeros in front and behind: maps that a convolution with weights of 0 makes, concatenated."""
    source, a = first(graph, node), graph.arguments(node)
    by = list(a["pad"])
    if not any(by):
        return source
    if len(graph.shape(source)) != 3 or len(by) != 6 or any(by[:4]) or min(by) < 0:
        graph.refuse(
            node,
            f"pads by {by}, other than channels: give the padding to the convolution or pool that follows",
        )
    if a["mode"] != "constant" or a.get("value"):
        graph.refuse(
            node, f"pads channels with mode {a['mode']!r}, value {a.get('value')}: only zeros can be packed"
        )
    front, behind = by[4:]
    zeros = {n: [_zero_channels(graph, node, source, n)] for n in sorted({front, behind}) if n}
    return graph.add("concat", node, [*zeros.get(front, []), source, *zeros.get(behind, [])])


def _zero_channels(graph: Graph, node: Node, source: str, n: int) -> str:
    channels, *sides = graph.shape(source)
    groups = math.gcd(channels, n)
    tensors = {"weight": np.zeros((n, channels // groups, 1, 1), np.float32), "bias": np.zeros(n, np.float32)}
    one: dict[str, Any] = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": groups}
    return graph.add("conv", node, [source], tensors, shape=(n, *sides), **one)


def permute(graph: Graph, node: Node) -> str:
    source, a, rank = first(graph, node), graph.arguments(node), node.meta["val"].dim()
    axes = list(a["dims"]) if "dims" in a else list(range(rank))
    if "dim0" in a:
        one, other = a["dim0"], a["dim1"]
        axes[one], axes[other] = axes[other], axes[one]
    axes = [axis % rank for axis in axes]
    if axes[0] != 0 or rank not in (3, 4):
        graph.refuse(node, f"to the order {axes} moves the batch or more axes than a packed network has")
    order = [axis - 1 for axis in axes[1:]] if rank == 4 else [2, 1, 0] if axes == [0, 2, 1] else [0, 1, 2]
    return source if order == [0, 1, 2] else graph.add("permute", node, [source], order=order)


def expand(graph: Graph, node: Node) -> str:
    """A pixel repeated over a map: resizing that reads the same pixel everywhere."""
    source = first(graph, node)
    before, after = graph.shape(source), as_value(node.meta["val"].shape[1:])
    if before == after:
        return source
    if len(after) != 3 or before != (after[0], 1, 1):
        graph.refuse(node, f"of {list(before)} to {list(after)}: only (C, 1, 1) can be spread over a map")
    tensors: dict[str, np.ndarray] = {}
    for role, n in zip(("row", "column"), after[1:], strict=True):
        tensors |= {role: np.zeros(n, np.int32), f"{role}_share": np.zeros(n, np.float32)}
    return graph.add("resize", node, [source], tensors)
