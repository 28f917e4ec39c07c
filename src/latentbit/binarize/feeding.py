"""What feeds a binary layer: found by torch.fx, replaced where it leaves nothing of x but its positive part.

    sign(relu(x)) = +1 for every x

A ReLU in front of a binary layer makes its input constant. ReLU, ReLU6, sigmoids and softmax are such; SiLU, GELU and
hard swish are not, they keep the sign of x. Pools, dropout, flatten, additions and concatenations pass it on.
"""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import fx, nn
from torch.nn import functional as F

from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.models import activations

Replacement = Literal["prelu", "rprelu", "hardtanh"]

REPLACED = (nn.ReLU, nn.ReLU6)
"""Activations that another one can stand for."""
NEVER_NEGATIVE = (*REPLACED, nn.Sigmoid, nn.Hardsigmoid, nn.Softmax, nn.Softplus)
FUNCTIONS = (
    F.relu,
    F.relu_,
    torch.relu,
    torch.relu_,
    F.relu6,
    torch.sigmoid,
    F.sigmoid,
    F.hardsigmoid,
    F.softplus,
)
METHODS = ("relu", "relu_", "sigmoid", "abs", "softmax")

PASS_ON = (
    nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool2d, nn.Dropout, nn.Dropout2d, nn.Identity, nn.Flatten, nn.Unflatten, nn.ZeroPad2d, nn.Upsample,
)  # fmt: skip
FUNCTIONS_PASS_ON = (
    F.max_pool1d, F.avg_pool1d, F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d, F.dropout,
    F.interpolate, torch.flatten, torch.reshape, torch.cat, torch.add, operator.add, operator.iadd, operator.getitem,
)  # fmt: skip
METHODS_PASS_ON = (
    "flatten", "view", "reshape", "mean", "contiguous", "permute", "transpose", "add", "add_", "squeeze", "unsqueeze"
)  # fmt: skip


class CannotReplace(LatentbitError):
    """An activation= that is none, or that does not fit where it should stand."""


@dataclass(frozen=True)
class Blocked:
    """A binary layer that sees no negative number."""

    layer: str
    by: str
    """Name of the activation module in front of it, or the function that its forward calls."""
    is_module: bool
    channels: int | None
    """Of the map that the activation sees, where it is known; None behind linear layers."""


class _Tracer(fx.Tracer):
    """Modules of torch and binary layers are leaves, whatever hooks they have."""

    def is_leaf_module(self, m: nn.Module, qualified_name: str) -> bool:
        return isinstance(m, BINARY_LAYERS) or super().is_leaf_module(m, qualified_name)


def blocked(model: nn.Module) -> list[Blocked] | None:
    """Binary layers whose input is never negative, with what makes it so; None if the forward cannot be traced."""
    try:
        graph = _Tracer().trace(model)
    except Exception:  # fx raises whatever the forward raises when it meets a proxy
        return None
    found = []
    for node in graph.nodes:
        if node.op == "call_module" and _needs_negative(model.get_submodule(node.target)):
            for culprit in _never_negative(model, node.args[0]) or []:
                is_module = culprit.op == "call_module"
                name = (
                    culprit.target if is_module else getattr(culprit.target, "__name__", str(culprit.target))
                )
                found.append(Blocked(str(node.target), str(name), is_module, _channels(model, culprit)))
    return found


def _needs_negative(layer: nn.Module) -> bool:
    """Whether this is a binary layer whose bits are all the same for positive numbers.

    Not so for methods with thresholds above 0 (DoReFa-Net, HWGQ, ABC-Net) or at the mean of the sample (RBNN).
    """
    if not isinstance(layer, BINARY_LAYERS):
        return False
    w = layer.weight.detach()
    if w.is_meta:
        return True
    shape = (2, w.shape[1] * getattr(layer, "groups", 1), *[3] * (w.dim() - 2))
    with torch.no_grad():
        x = torch.linspace(0, 3, math.prod(shape), dtype=w.dtype, device=w.device).view(shape)
        bits = layer.binarizer.input(x)
    return bool(bits.min() == bits.max())


def blocked_in_encoders(model: nn.Module) -> dict[str, str]:
    """Second layers of torch's transformer blocks, which tracing does not look into, behind a ReLU; with its name."""
    found = {}
    for name, block in model.named_modules():
        if isinstance(block, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            act = block.activation
            if _needs_negative(block.linear2) and (act in FUNCTIONS or isinstance(act, NEVER_NEGATIVE)):
                found[f"{name}.linear2".lstrip(".")] = f"{name}.activation".lstrip(".")
    return found


def replace_(model: nn.Module, kind: Replacement) -> list[tuple[str, str]]:
    """Put another activation in the place of each ReLU that feeds a binary layer: (name, "ReLU -> PReLU(16)").

    Where the forward cannot be traced, in the place of every ReLU of the model. A function that a module keeps in an
    attribute, as nn.TransformerEncoderLayer does, is replaced too; one that a forward calls by name cannot be.
    """
    if kind not in get_args(Replacement):
        raise CannotReplace(f"activation={kind!r}: choose {', '.join(get_args(Replacement))} or None")
    traced = blocked(model)
    if traced is None:
        channels: dict[str, set[int | None]] = {
            name: {None} for name, module in model.named_modules() if isinstance(module, REPLACED)
        }
    else:
        channels = {}
        for one in traced:
            if one.is_module and isinstance(model.get_submodule(one.by), REPLACED):
                channels.setdefault(one.by, set()).add(one.channels)
    done = []
    wanted = {name: widths.pop() if len(widths) == 1 else None for name, widths in channels.items()}
    inside = _inside_leaves(model) if traced is not None else [""]
    if traced is None or not all(one.is_module for one in traced):
        inside = [""]
    for name in _functions_kept(model):
        if any(name.startswith(path) for path in inside):
            wanted[name] = None
    for name, width in wanted.items():
        old, new = _put(model, name, _create(kind, width))
        done.append((name, f"{old} -> {new}"))
    _note(model, {name: (kind, width) for name, width in wanted.items()})
    return done


def _inside_leaves(model: nn.Module) -> list[str]:
    """Where binary layers are that fx does not see: in containers of torch, which it takes for one operation."""
    leaf = _Tracer().is_leaf_module
    holders = [
        name for name, m in model.named_modules() if not isinstance(m, BINARY_LAYERS) and leaf(m, name)
    ]
    layers = [name for name, m in model.named_modules() if isinstance(m, BINARY_LAYERS)]
    return [f"{holder}." for holder in holders if any(layer.startswith(f"{holder}.") for layer in layers)]


def put_in(model: nn.Module) -> dict[str, tuple[str, int | None]]:
    """What replace_ did to this model: names with kind and channels, for put_back_."""
    return dict(getattr(model, "activations_put_in", {}))


def put_back_(model: nn.Module, replaced: dict[str, tuple[Replacement, int | None]]) -> None:
    """Do to a model what replace_ did to another one of its kind."""
    for name, (kind, width) in replaced.items():
        _put(model, name, _create(kind, width))
    _note(model, replaced)


def _note(model: nn.Module, replaced: dict[str, Any]) -> None:
    if replaced:
        model.activations_put_in = {**put_in(model), **replaced}  # type: ignore[assignment]


def _functions_kept(model: nn.Module) -> Iterator[str]:
    """Names of attributes that hold the function relu."""
    for path, module in model.named_modules():
        for attribute, value in vars(module).items():
            if callable(value) and value in (F.relu, torch.relu, F.relu6):
                yield f"{path}.{attribute}".lstrip(".")


def _create(kind: Replacement, channels: int | None) -> nn.Module:
    """Per channel where there are channels; else one slope for all, which fits any shape."""
    if channels is None and kind != "hardtanh":
        return nn.PReLU()
    return activations.create(kind, channels or 1)


def _named(module: nn.Module) -> str:
    slope = module.prelu if isinstance(module, activations.RPReLU) else module
    n = f"({slope.num_parameters})" if isinstance(slope, nn.PReLU) else ""
    return f"{type(module).__name__}{n}"


def _put(model: nn.Module, name: str, new: nn.Module) -> tuple[str, str]:
    """At every place where the old one stands, a module or the function in an attribute; gives the names of both."""
    path, _, attribute = name.rpartition(".")
    holder = model.get_submodule(path)
    old = getattr(holder, attribute)
    weight = next(model.parameters(), None)
    if weight is not None:
        new.to(weight.device, weight.dtype)
    new.train(holder.training)
    if not isinstance(old, nn.Module):
        setattr(holder, attribute, new)
        return "relu", _named(new)
    for parent in model.modules():
        for child_name, child in parent._modules.items():
            if child is old:
                setattr(parent, child_name, new)
    return type(old).__name__, _named(new)


def _never_negative(model: nn.Module, node: object) -> list[fx.Node] | None:
    """The activations that keep a value from being negative; None if it may be."""
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        module = model.get_submodule(str(node.target))
        if isinstance(module, NEVER_NEGATIVE):
            return [node]
        passes = isinstance(module, (*PASS_ON, nn.Sequential)) and not list(module.children())
    elif node.op == "call_function":
        if node.target in FUNCTIONS:
            return [node]
        passes = node.target in FUNCTIONS_PASS_ON
    else:
        if node.op == "call_method" and node.target in METHODS:
            return [node]
        passes = node.op == "call_method" and node.target in METHODS_PASS_ON
    if not passes:
        return None
    sources = [_never_negative(model, source) for source in _values(node)]
    if not sources or any(source is None for source in sources):
        return None
    return [culprit for source in sources for culprit in source or []]


def _values(node: fx.Node) -> Iterator[object]:
    """The tensors that a node passes on: the first argument, both of an addition, all of a concatenation."""
    if node.target in (torch.add, operator.add, operator.iadd, "add", "add_"):
        yield from node.args[:2]
    elif node.args and isinstance(node.args[0], (list, tuple)):
        yield from node.args[0]
    else:
        yield from node.args[:1]


def _channels(model: nn.Module, node: fx.Node) -> int | None:
    """Channels of the map that an activation sees: those of the nearest layer before it that fixes them."""
    for source in node.all_input_nodes:
        if source.op == "call_module":
            module = model.get_submodule(str(source.target))
            if isinstance(module, nn.Conv1d | nn.Conv2d):
                return module.out_channels
            if isinstance(module, nn.BatchNorm2d):
                return module.num_features
            if isinstance(module, nn.Linear | nn.LayerNorm | nn.BatchNorm1d | nn.Embedding):
                return None
        if source.target in (torch.cat, torch.flatten, torch.reshape) or source.op in (
            "placeholder",
            "get_attr",
        ):
            return None
        return _channels(model, source)
    return None
