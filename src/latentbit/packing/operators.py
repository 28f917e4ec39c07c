"""What each operator of an exported graph becomes: one function per operator, found by its name in OPERATORS.

A function takes the graph under conversion and the node, adds layers and returns the name of the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from latentbit.errors import LatentbitError
from latentbit.lbit import real_vector

if TYPE_CHECKING:
    from latentbit.packing.trace import Graph

Node = torch.fx.Node


class CannotPack(LatentbitError):
    """Something in the model has no place in a packed network; names the module and the way out."""


def _pair(value: Any) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return [int(v) for v in (values * 2 if len(values) == 1 else values)]


def _conv2d(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    dilation, kernel = _pair(a["dilation"]), list(a["weight"].shape[2:])
    if isinstance(a["padding"], str):
        total = [d * (k - 1) if a["padding"] == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
        padding = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        padding = _pair(a["padding"]) * 2
    source = graph.value(a["input"], node)
    return graph.add_weighted(
        "conv",
        node,
        source,
        stride=_pair(a["stride"]),
        padding=padding,
        dilation=dilation,
        groups=int(a["groups"]),
    )


def _linear(graph: Graph, node: Node) -> str:
    source = graph.value(graph.arguments(node)["input"], node)
    if len(graph.shape(source)) != 1:
        graph.refuse(node, f"on an input of shape {list(graph.shape(source))}: flatten it first")
    return graph.add_weighted("linear", node, source)


def _batch_norm(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    if a["running_mean"] is None or a.get("training"):
        graph.refuse(node, "uses the statistics of the batch: track_running_stats must be on")
    n = a["running_mean"].numel()
    tensors = {
        "gamma": np.ones(n, np.float32) if a["weight"] is None else real_vector(a["weight"].cpu()),
        "beta": np.zeros(n, np.float32) if a["bias"] is None else real_vector(a["bias"].cpu()),
        "mean": real_vector(a["running_mean"].cpu()),
        "var": real_vector(a["running_var"].cpu()),
    }
    shape = graph.shape(graph.value(a["input"], node))
    return graph.add("batch_norm", node, [graph.value(a["input"], node)], tensors, shape, eps=float(a["eps"]))


def _first(graph: Graph, node: Node) -> str:
    """Operators that change nothing at inference, and taking the only result of several."""
    return graph.value(node.args[0], node)


def _relu(graph: Graph, node: Node) -> str:
    return graph.add("relu", node, [_first(graph, node)])


def _hardtanh(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    low, high = a.get("min_val", a.get("min")), a.get("max_val", a.get("max"))
    if low == 0 and high is None:
        return _relu(graph, node)
    if (low, high) != (-1, 1):
        graph.refuse(
            node, f"clamps to [{low}, {high}]: only [-1, 1] (hardtanh) and [0, inf] (relu) can be packed"
        )
    return graph.add("hardtanh", node, [_first(graph, node)])


def _prelu(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    source = _first(graph, node)
    slope = a["weight"] if "weight" in a else torch.tensor([float(a["negative_slope"])])
    slope = real_vector(slope.detach().cpu())
    slope = np.ascontiguousarray(np.broadcast_to(slope, graph.shape(source)[:1]))
    return graph.add("prelu", node, [source], {"slope": slope})


def _pool(graph: Graph, node: Node, op: str, **extra: Any) -> str:
    a = graph.arguments(node)
    source = graph.value(node.args[0], node)
    if len(graph.shape(source)) != 3:
        graph.refuse(node, "pools something that is not a map")
    if _pair(a.get("dilation", 1)) != [1, 1]:
        graph.refuse(node, "is dilated")
    if a.get("divisor_override") is not None:
        graph.refuse(node, "uses divisor_override")
    kernel = _pair(a["kernel_size"])
    stride = _pair(a["stride"]) if a["stride"] else kernel
    padding = _pair(a["padding"]) * 2
    sizes, outs = graph.shape(source)[1:], node.meta["val"].shape[2:]
    for axis in (0, 1):
        # ceil_mode is padding at the far end, which an average must not count.
        missing = (outs[axis] - 1) * stride[axis] + kernel[axis] - sizes[axis] - 2 * padding[axis]
        if missing > 0 and extra.get("count_include_pad") and op == "avg_pool":
            if any(padding):
                graph.refuse(node, "uses ceil_mode with padding that counts: set count_include_pad=False")
            extra["count_include_pad"] = False
        padding[axis + 2] += max(0, missing)
    return graph.add(op, node, [source], kernel=kernel, stride=stride, padding=padding, **extra)


def _max_pool2d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "max_pool")


def _avg_pool2d(graph: Graph, node: Node) -> str:
    return _pool(graph, node, "avg_pool", count_include_pad=bool(graph.arguments(node)["count_include_pad"]))


def _average(graph: Graph, node: Node, source: str, kernel: list[int]) -> str:
    if kernel == [1, 1]:
        return source
    shape = graph.shape(source)
    out = (shape[0], shape[1] // kernel[0], shape[2] // kernel[1])
    pads = [0, 0, 0, 0]
    return graph.add(
        "avg_pool",
        node,
        [source],
        shape=out,
        kernel=kernel,
        stride=kernel,
        padding=pads,
        count_include_pad=True,
    )


def _adaptive_avg_pool2d(graph: Graph, node: Node) -> str:
    source = _first(graph, node)
    sizes, wanted = graph.shape(source)[1:], node.meta["val"].shape[2:]
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        graph.refuse(
            node, f"from {list(sizes)} to {list(wanted)} has windows of several sizes: use AvgPool2d"
        )
    return _average(graph, node, source, [size // out for size, out in zip(sizes, wanted, strict=True)])


def _mean(graph: Graph, node: Node) -> str:
    source, a = _first(graph, node), graph.arguments(node)
    if sorted(dim % 4 for dim in a["dim"] or ()) != [2, 3] or len(graph.shape(source)) != 3:
        graph.refuse(node, "is an average over something other than height and width")
    pooled = _average(graph, node, source, list(graph.shape(source)[1:]))
    return pooled if a["keepdim"] else graph.add("flatten", node, [pooled])


def _reshape(graph: Graph, node: Node) -> str:
    source = _first(graph, node)
    before, after = graph.shape(source), tuple(node.meta["val"].shape)
    if after[1:] == before and after[0] == 2:
        return source
    one_pixel = before[1:] == (1, 1) and after == (2, before[0], 1)  # between x.squeeze(-1) and a second one
    if after != (2, math.prod(before)) and not one_pixel:
        graph.refuse(
            node,
            f"makes {list(after[1:])} of {list(before)}: only flattening all of it is possible",
        )
    return graph.add("flatten", node, [source], shape=(math.prod(before),))


def _constant(graph: Graph, node: Node, value: Any, source: str) -> np.ndarray | None:
    """A number or a tensor with one number per channel, as a vector over the channels of `source`."""
    shape = graph.shape(source)
    tensor = value.detach().float().cpu() if isinstance(value, Tensor) else torch.tensor(float(value))
    aligned = tensor.reshape([1] * (len(shape) + 1 - tensor.dim()) + list(tensor.shape))
    if aligned.numel() not in (1, shape[0]) or (aligned.numel() > 1 and aligned.shape[1] != shape[0]):
        graph.refuse(
            node, f"with a constant of shape {list(tensor.shape)}: one number per channel can be packed"
        )
    return np.ascontiguousarray(np.broadcast_to(real_vector(tensor), shape[:1]))


def _affine(graph: Graph, node: Node, source: str, scale: Any, bias: Any) -> str:
    tensors = {"scale": _constant(graph, node, scale, source), "bias": _constant(graph, node, bias, source)}
    return graph.add("affine", node, [source], tensors)


def _add(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    if a.get("alpha", 1) != 1:
        graph.refuse(node, "with alpha other than 1")
    x, y = a["self"], a["other"]
    if not isinstance(x, Node):
        x, y = y, x
    if not isinstance(y, Node):
        return _affine(graph, node, graph.value(x, node), 1.0, y)
    first, second = graph.value(x, node), graph.value(y, node)
    if graph.shape(first) != graph.shape(second):
        graph.refuse(
            node, f"of {list(graph.shape(first))} and {list(graph.shape(second))}: shapes must be equal"
        )
    return graph.add("add", node, [first, second])


def _sub(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    if isinstance(a["other"], Node) or a.get("alpha", 1) != 1:
        graph.refuse(node, "of two values; only a constant can be subtracted")
    return _affine(graph, node, graph.value(a["self"], node), 1.0, -a["other"])


def _mul(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    x, y = (a["self"], a["other"]) if isinstance(a["self"], Node) else (a["other"], a["self"])
    if isinstance(y, Node):
        graph.refuse(node, "of two values; only a constant can be multiplied in")
    return _affine(graph, node, graph.value(x, node), y, 0.0)


def _div(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    if isinstance(a["other"], Node):
        graph.refuse(node, "by a value; only division by a constant can be packed")
    return _affine(graph, node, graph.value(a["self"], node), 1.0 / a["other"], 0.0)


def _cat(graph: Graph, node: Node) -> str:
    parts = graph.arguments(node)["tensors"]
    sources = [graph.value(part, node) for part in parts]
    if graph.arguments(node)["dim"] % node.meta["val"].dim() != 1 or len(graph.shape(sources[0])) != 3:
        graph.refuse(node, "joins something other than the channels of maps")
    return sources[0] if len(sources) == 1 else graph.add("concat", node, sources)


def _softmax(graph: Graph, node: Node) -> str:
    return graph.refuse(node, "is not part of a packed network: let the model return its logits")


OPERATORS: dict[str, Callable[[Graph, Node], str]] = {
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_unsafe_view": _reshape,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "add": _add,
    "alias": _first,
    "avg_pool2d": _avg_pool2d,
    "batch_norm": _batch_norm,
    "cat": _cat,
    "clamp": _hardtanh,
    "clone": _first,
    "concat": _cat,
    "concatenate": _cat,
    "contiguous": _first,
    "conv2d": _conv2d,
    "detach": _first,
    "div": _div,
    "dropout": _first,
    "feature_dropout": _first,
    "flatten": _reshape,
    "hardtanh": _hardtanh,
    "leaky_relu": _prelu,
    "linear": _linear,
    "log_softmax": _softmax,
    "max_pool2d": _max_pool2d,
    "mean": _mean,
    "mul": _mul,
    "prelu": _prelu,
    "relu": _relu,
    "reshape": _reshape,
    "softmax": _softmax,
    "squeeze": _reshape,
    "sub": _sub,
    "view": _reshape,
}
OPERATORS["<built-in function getitem>"] = _first
