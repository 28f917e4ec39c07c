"""What each operator of an exported graph becomes: one function per operator, found by its name in OPERATORS.

A function takes the graph under conversion and the node, adds layers and returns the name of the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from latentbit.errors import LatentbitError
from latentbit.lbit import real_vector

if TYPE_CHECKING:
    from latentbit.packing.trace import Graph

Node = torch.fx.Node
Operator = Callable[["Graph", Node], str]
MAX_FLOAT = torch.finfo(torch.float32).max


class CannotPack(LatentbitError):
    """Something in the model has no place in a packed network; names the module and the way out."""


def as_value(sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape that a packed network gives a tensor without its batch: one axis stays a vector, (C, L) is a map
    of one row.
    """
    return (sizes[0], 1, sizes[1]) if len(sizes) == 2 else tuple(sizes)


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


def _conv_transpose2d(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    weight, groups = a["weight"], int(a["groups"])
    if not isinstance(weight, Tensor):
        graph.refuse(node, "has weights that depend on the input")
    n_in, per_group, *kernel = weight.shape
    # To the layout of a convolution: outputs first, the inputs of one group.
    turned = weight.reshape(groups, n_in // groups, per_group, *kernel).transpose(1, 2)
    tensors = {
        "weight": turned.reshape(groups * per_group, n_in // groups, *kernel).float().cpu().numpy().copy(),
        "bias": np.zeros(groups * per_group, np.float32)
        if a["bias"] is None
        else real_vector(a["bias"].cpu()),
    }
    return graph.add(
        "conv_transpose",
        node,
        [graph.value(a["input"], node)],
        tensors,
        stride=_pair(a["stride"]),
        padding=_pair(a["padding"]),
        dilation=_pair(a["dilation"]),
        groups=groups,
        size=list(node.meta["val"].shape[2:]),
    )


def _upsample(graph: Graph, node: Node, bilinear: bool) -> str:
    """F.interpolate: for each output row and column, which input it reads and how much of the next one."""
    a, source = graph.arguments(node), _first(graph, node)
    scales = a.get("scale_factors") or (a.get("scales_h"), a.get("scales_w"))
    tensors = {}
    for axis, (role, scale) in enumerate(zip(("row", "column"), scales, strict=True)):
        n_in, n_out = graph.shape(source)[axis + 1], node.meta["val"].shape[axis + 2]
        at = _source_places(n_in, n_out, scale, bilinear, bool(a.get("align_corners")))
        first = np.minimum(np.floor(at), n_in - 1)
        tensors[role] = first.astype(np.int32)
        tensors[f"{role}_share"] = np.clip(at - first, 0, 1) if bilinear else np.zeros(n_out, np.float32)
    return graph.add("resize", node, [source], tensors)


def _source_places(n_in: int, n_out: int, scale: float | None, bilinear: bool, corners: bool) -> np.ndarray:
    """Where in the input every output lies, in float32 as PyTorch computes it."""
    at = np.arange(n_out, dtype=np.float32)
    if corners:
        return at * np.float32((n_in - 1) / (n_out - 1) if n_out > 1 else 0)
    step = np.float32(1 / scale if scale else n_in / n_out)
    return np.maximum(step * (at + np.float32(0.5)) - np.float32(0.5), 0) if bilinear else at * step


def _upsample_nearest2d(graph: Graph, node: Node) -> str:
    return _upsample(graph, node, bilinear=False)


def _upsample_bilinear2d(graph: Graph, node: Node) -> str:
    return _upsample(graph, node, bilinear=True)


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
    if any(isinstance(bound, Tensor | Node) for bound in (low, high)):
        graph.refuse(node, "clamps to bounds that are tensors: pass numbers")
    if low == 0 and high is None:
        return _relu(graph, node)
    if (low, high) == (-1, 1):
        return graph.add("hardtanh", node, [_first(graph, node)])
    return _clamp_to(graph, node, low, high)


def _clamp_to(graph: Graph, node: Node, low: float | None, high: float | None) -> str:
    bounds = [-MAX_FLOAT if low is None else float(low), MAX_FLOAT if high is None else float(high)]
    if not -MAX_FLOAT <= bounds[0] <= bounds[1] <= MAX_FLOAT:
        graph.refuse(node, f"clamps to [{low}, {high}], which is empty or more than float32 holds")
    return graph.add("clamp", node, [_first(graph, node)], low=bounds[0], high=bounds[1])


def _relu6(graph: Graph, node: Node) -> str:
    return _clamp_to(graph, node, 0, 6)


def _prelu(graph: Graph, node: Node) -> str:
    a = graph.arguments(node)
    source = _first(graph, node)
    slope = a["weight"] if "weight" in a else torch.tensor([float(a["negative_slope"])])
    slope = real_vector(slope.detach().cpu())
    slope = np.ascontiguousarray(np.broadcast_to(slope, graph.shape(source)[:1]))
    return graph.add("prelu", node, [source], {"slope": slope})


def _as(op: str) -> Operator:
    """An activation that is the same for all channels and has nothing to set."""
    return lambda graph, node: graph.add(op, node, [_first(graph, node)])


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
        return graph.add("adaptive_avg_pool", node, [source], size=list(wanted))
    return _average(graph, node, source, [size // out for size, out in zip(sizes, wanted, strict=True)])


def _mean(graph: Graph, node: Node) -> str:
    source, a = _first(graph, node), graph.arguments(node)
    if sorted(dim % 4 for dim in a["dim"] or ()) != [2, 3] or len(graph.shape(source)) != 3:
        graph.refuse(node, "is an average over something other than height and width")
    pooled = _average(graph, node, source, list(graph.shape(source)[1:]))
    return pooled if a["keepdim"] else graph.add("flatten", node, [pooled])


def _reshape(graph: Graph, node: Node) -> str:
    source = _first(graph, node)
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


def _permute(graph: Graph, node: Node) -> str:
    source, a, rank = _first(graph, node), graph.arguments(node), node.meta["val"].dim()
    axes = list(a["dims"]) if "dims" in a else list(range(rank))
    if "dim0" in a:
        first, second = a["dim0"], a["dim1"]
        axes[first], axes[second] = axes[second], axes[first]
    axes = [axis % rank for axis in axes]
    if axes[0] != 0 or rank not in (3, 4):
        graph.refuse(node, f"to the order {axes} moves the batch or more axes than a packed network has")
    order = [axis - 1 for axis in axes[1:]] if rank == 4 else [2, 1, 0] if axes == [0, 2, 1] else [0, 1, 2]
    return source if order == [0, 1, 2] else graph.add("permute", node, [source], order=order)


def _expand(graph: Graph, node: Node) -> str:
    """A pixel repeated over a map: resizing that reads the same pixel everywhere."""
    source = _first(graph, node)
    before, after = graph.shape(source), as_value(node.meta["val"].shape[1:])
    if before == after:
        return source
    if len(after) != 3 or before != (after[0], 1, 1):
        graph.refuse(node, f"of {list(before)} to {list(after)}: only (C, 1, 1) can be spread over a map")
    size = {"row": after[1], "column": after[2]}
    places = {role: np.zeros(n, np.int32) for role, n in size.items()}
    return graph.add(
        "resize",
        node,
        [source],
        places | {f"{role}_share": np.zeros(n, np.float32) for role, n in size.items()},
    )


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
    "pad": "give the padding to the convolution or pool that follows, with padding=",
    "scaled_dot_product_attention": "attention can not be packed; run that part in PyTorch",
    "softplus": "use nn.SiLU, nn.Hardswish or nn.PReLU",
    "tanh": "use nn.Hardtanh or nn.Sigmoid",
    "upsample_bicubic2d": 'use mode="bilinear" or "nearest"',
}
"""What to do about operators that have no counterpart, where there is something to say."""

OPERATORS: dict[str, Operator] = {
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_unsafe_view": _reshape,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "add": _add,
    "alias": _first,
    "avg_pool2d": _avg_pool2d,
    "batch_norm": _batch_norm,
    "cat": _cat,
    "clamp": _hardtanh,
    "clamp_max": _hardtanh,
    "clamp_min": _hardtanh,
    "clone": _first,
    "concat": _cat,
    "concatenate": _cat,
    "contiguous": _first,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "detach": _first,
    "div": _div,
    "dropout": _first,
    "expand": _expand,
    "expand_as": _expand,
    "feature_dropout": _first,
    "flatten": _reshape,
    "hardsigmoid": _as("hard_sigmoid"),
    "hardswish": _as("hard_swish"),
    "hardtanh": _hardtanh,
    "leaky_relu": _prelu,
    "linear": _linear,
    "log_softmax": _softmax,
    "max_pool2d": _max_pool2d,
    "mean": _mean,
    "mul": _mul,
    "permute": _permute,
    "prelu": _prelu,
    "relu": _relu,
    "relu6": _relu6,
    "reshape": _reshape,
    "rsub": _rsub,
    "sigmoid": _as("sigmoid"),
    "silu": _as("silu"),
    "softmax": _softmax,
    "squeeze": _reshape,
    "sub": _sub,
    "transpose": _permute,
    "unsqueeze": _reshape,
    "upsample_bilinear2d": _upsample_bilinear2d,
    "upsample_nearest2d": _upsample_nearest2d,
    "view": _reshape,
}
OPERATORS["<built-in function getitem>"] = _first
