"""What each operator of an exported graph becomes: one function per operator, found by its name in OPERATORS.

A function takes the graph under conversion and the node, adds layers and returns the name of the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from latentbit.errors import LatentbitError
from latentbit.lbit import real_vector
from latentbit.packing import shapes
from latentbit.packing.shapes import as_value, first

if TYPE_CHECKING:
    from latentbit.packing.trace import Graph

Node = torch.fx.Node
Operator = Callable[["Graph", Node], str]
MAX_FLOAT = torch.finfo(torch.float32).max


class CannotPack(LatentbitError):
    """Something in the model has no place in a packed network; names the module and the way out."""


def _linear(graph: Graph, node: Node) -> str:
    source = graph.value(graph.arguments(node)["input"], node)
    if len(graph.shape(source)) != 1:
        shape = list(node.args[0].meta["val"].shape[1:])  # type: ignore[union-attr]
        graph.refuse(node, f"on an input of shape {shape}: flatten it first, or use a 1x1 convolution")
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


def _relu(graph: Graph, node: Node) -> str:
    return graph.add("relu", node, [first(graph, node)])


def _hardtanh(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    low, high = a.get("min_val", a.get("min")), a.get("max_val", a.get("max"))
    if any(isinstance(bound, Tensor | Node) for bound in (low, high)):
        graph.refuse(node, "clamps to bounds that are tensors: pass numbers")
    if low == 0 and high is None:
        return _relu(graph, node)
    if (low, high) == (-1, 1):
        return graph.add("hardtanh", node, [first(graph, node)])
    return _clamp_to(graph, node, low, high)


def _clamp_to(graph: Graph, node: Node, low: float | None, high: float | None) -> str:
    bounds = [-MAX_FLOAT if low is None else float(low), MAX_FLOAT if high is None else float(high)]
    if not -MAX_FLOAT <= bounds[0] <= bounds[1] <= MAX_FLOAT:
        graph.refuse(node, f"clamps to [{low}, {high}], which is empty or more than float32 holds")
    return graph.add("clamp", node, [first(graph, node)], low=bounds[0], high=bounds[1])


def _relu6(graph: Graph, node: Node) -> str:
    return _clamp_to(graph, node, 0, 6)


def _prelu(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    source = first(graph, node)
    slope = a["weight"] if "weight" in a else torch.tensor([float(a["negative_slope"])])
    slope = real_vector(slope.detach().cpu())
    slope = np.ascontiguousarray(np.broadcast_to(slope, graph.shape(source)[:1]))
    return graph.add("prelu", node, [source], {"slope": slope})


def _as(op: str) -> Operator:
    """An activation that is the same for all channels and has nothing to set."""
    return lambda graph, node: graph.add(op, node, [first(graph, node)])


def _constant(graph: Graph, node: Node, value: Any, source: str) -> np.ndarray | None:
    """A number or a tensor with one number per channel, as a vector over the channels of `source`."""
    shape, result = graph.shape(source), node.meta["val"].shape
    if as_value(result[1:]) != shape:
        graph.refuse(node, f"makes {list(result[1:])} of {list(shape)} with a constant: shapes must be equal")
    tensor = value.detach().float().cpu() if isinstance(value, Tensor) else torch.tensor(float(value))
    aligned = tensor.reshape([1] * (len(result) - tensor.dim()) + list(tensor.shape))
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
    return _sum(graph, node, a["self"], a["other"], a.get("alpha", 1))


def _sub(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    return _sum(graph, node, a["self"], a["other"], -a.get("alpha", 1))


def _rsub(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    return _sum(graph, node, a["other"], a["self"], -a.get("alpha", 1))


def _sum(graph: Graph, node: Node, x: Any, y: Any, factor: float) -> str:
    """x + factor * y, where one of them may be a constant."""
    if not isinstance(y, Node):
        return _affine(graph, node, graph.value(x, node), 1.0, factor * y)
    if not isinstance(x, Node):
        return _affine(graph, node, graph.value(y, node), factor, x)
    first, second = graph.value(x, node), graph.value(y, node)
    if graph.shape(first) != graph.shape(second):
        graph.refuse(
            node, f"of {list(graph.shape(first))} and {list(graph.shape(second))}: shapes must be equal"
        )
    if factor != 1:
        second = _affine(graph, node, second, factor, 0.0)
    return graph.add("add", node, [first, second])


def _mul(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    x, y = (a["self"], a["other"]) if isinstance(a["self"], Node) else (a["other"], a["self"])
    if isinstance(y, Node):
        return _multiply(graph, node, graph.value(x, node), graph.value(y, node))
    return _affine(graph, node, graph.value(x, node), y, 0.0)


def _multiply(graph: Graph, node: Node, first: str, second: str) -> str:
    """Two values of one shape, or a map and one number per channel, as squeeze-and-excitation has it."""
    if len(graph.shape(first)) == 3 and graph.shape(first)[1:] == (1, 1):
        first, second = second, first
    shape, gate = graph.shape(first), graph.shape(second)
    if gate not in (shape, (shape[0], 1, 1)):
        graph.refuse(
            node,
            f"of {list(shape)} and {list(gate)}: shapes must be equal, or one of them (C, 1, 1)",
        )
    return graph.add("multiply", node, [first, second])


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


REMEDIES = {
    "bmm": "attention multiplies two values, which a packed network can not; run that part in PyTorch",
    "conv3d": "a packed network has two axes beside the channels; run it in PyTorch",
    "elu": "use nn.SiLU, nn.Hardswish or nn.PReLU",
    "gelu": "use nn.SiLU, nn.Hardswish or nn.PReLU",
    "group_norm": "its statistics depend on the image; use nn.BatchNorm2d",
    "instance_norm": "its statistics depend on the image; use nn.BatchNorm2d",
    "layer_norm": "its statistics depend on the image; use nn.BatchNorm2d, or run transformers in PyTorch",
    "matmul": "attention multiplies two values, which a packed network can not; run that part in PyTorch",
    "max_pool3d": "a packed network has two axes beside the channels; run it in PyTorch",
    "mish": "use nn.SiLU, nn.Hardswish or nn.PReLU",
    "scaled_dot_product_attention": "attention can not be packed; run that part in PyTorch",
    "softplus": "use nn.SiLU, nn.Hardswish or nn.PReLU",
    "tanh": "use nn.Hardtanh or nn.Sigmoid",
    "upsample_bicubic2d": 'use mode="bilinear" or "nearest"',
}
"""What to do about operators that have no counterpart, where there is something to say."""

OPERATORS: dict[str, Operator] = {
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_unsafe_view": shapes.reshape,
    "adaptive_avg_pool1d": shapes.adaptive_avg_pool,
    "adaptive_avg_pool2d": shapes.adaptive_avg_pool,
    "add": _add,
    "alias": first,
    "avg_pool1d": shapes.avg_pool1d,
    "avg_pool2d": shapes.avg_pool2d,
    "batch_norm": _batch_norm,
    "cat": _cat,
    "clamp": _hardtanh,
    "clamp_max": _hardtanh,
    "clamp_min": _hardtanh,
    "clone": first,
    "concat": _cat,
    "concatenate": _cat,
    "contiguous": first,
    "conv1d": shapes.conv1d,
    "conv2d": shapes.conv2d,
    "conv_transpose2d": shapes.conv_transpose2d,
    "detach": first,
    "div": _div,
    "dropout": first,
    "expand": shapes.expand,
    "expand_as": shapes.expand,
    "feature_dropout": first,
    "flatten": shapes.reshape,
    "hardsigmoid": _as("hard_sigmoid"),
    "hardswish": _as("hard_swish"),
    "hardtanh": _hardtanh,
    "leaky_relu": _prelu,
    "linear": _linear,
    "log_softmax": _softmax,
    "max_pool1d": shapes.max_pool1d,
    "max_pool2d": shapes.max_pool2d,
    "mean": shapes.mean,
    "mul": _mul,
    "pad": shapes.pad,
    "permute": shapes.permute,
    "prelu": _prelu,
    "relu": _relu,
    "relu6": _relu6,
    "reshape": shapes.reshape,
    "rsub": _rsub,
    "sigmoid": _as("sigmoid"),
    "silu": _as("silu"),
    "softmax": _softmax,
    "squeeze": shapes.reshape,
    "sub": _sub,
    "transpose": shapes.permute,
    "unflatten": shapes.reshape,
    "unsqueeze": shapes.reshape,
    "upsample_bilinear2d": shapes.upsample_bilinear2d,
    "upsample_nearest2d": shapes.upsample_nearest2d,
    "view": shapes.reshape,
}
OPERATORS["<built-in function getitem>"] = first
