"""A module becomes a list of layers: torch.export gives the graph, each operator in it becomes packed layers.

Modules and functional forms (nn.ReLU, F.relu, x.relu_()) are the same operator there. Binary layers are traced as
the stock layers they derive from and recognised by their path. The list still has ops of its own, which fold.py
removes: `batch_norm` (tensors gamma, beta, mean, var) and int8 `signs` where a file has `bits`.
"""

import copy
import dataclasses
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from latentbit.layers import BINARY_FORMS, BINARY_LAYERS, Binary
from latentbit.lbit import INPUT, Layer, real_vector
from latentbit.packing.binary_layers import add_binary
from latentbit.packing.operators import OPERATORS, REMEDIES, CannotPack
from latentbit.packing.shapes import as_value

Shape = tuple[int, ...]


def input_map(shape: Shape) -> tuple[int, int, int]:
    """The map that a file has for an input (C, H, W), (C, L) or (features)."""
    channels, height, width = as_value(shape) if len(shape) > 1 else (*shape, 1, 1)
    return channels, height, width


def trace(model: nn.Module, example: Tensor) -> list[Layer]:
    """Layers in topological order, the last is the output; shapes are filled in (without the batch)."""
    stock, binary = _stock_copy(model)
    # Two images, so that the size of the batch cannot be taken for a 1 that broadcasts.
    images = example.detach().float().cpu()[:1].repeat(2, *[1] * (example.dim() - 1))
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.export warns about its own insides
            stock(images[:1])  # a shape that does not fit says so here, in plain words
            exported = torch.export.export(stock, (images,), strict=False)
            if any(_mutates(node) for node in exported.graph.nodes):
                exported = exported.run_decompositions({})
    except Exception as error:  # torch.export raises whatever the model raises
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CannotPack(
            f"{type(model).__name__} cannot be traced with an input of {list(images.shape[1:])}: {reason[0][:300]}. "
            "Pack a module whose forward takes one tensor and does not branch on the values in it"
        ) from error
    return Graph(exported, model, binary, tuple(images.shape[1:])).convert()


def _mutates(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _stock_copy(model: nn.Module) -> tuple[nn.Module, dict[str, Binary]]:
    """A copy in eval() on the CPU whose binary layers are stock ones, and the binary layers by path."""
    binary = {
        path: m for path, m in model.named_modules(remove_duplicate=False) if isinstance(m, BINARY_LAYERS)
    }
    for path, layer in binary.items():
        if layer.view != "binary":
            raise CannotPack(f"{path}: this is a {layer.view} view; pack the binary view of the network")
    for path, module in model.named_modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d) and module.padding_mode != "zeros":
            raise CannotPack(f"{path}: padding_mode {module.padding_mode!r} cannot be packed, only 'zeros'")
    if model in binary.values():
        raise CannotPack("the model is a single binary layer: wrap it in nn.Sequential")
    stock = copy.deepcopy(model).cpu().float().eval()
    for path in binary:
        swapped = stock.get_submodule(path)
        swapped.__class__ = next(kind for kind, form in BINARY_FORMS.items() if isinstance(swapped, form))
    return stock, binary


def operator_name(node: torch.fx.Node) -> str:
    """As OPERATORS has it: relu for aten.relu.default."""
    return str(node.target).removeprefix("aten.").split(".")[0]


class Graph:
    """An exported program on its way to layers."""

    def __init__(
        self,
        exported: torch.export.ExportedProgram,
        model: nn.Module,
        binary: Mapping[str, Binary],
        input_shape: Shape,
    ) -> None:
        self.nodes = list(exported.graph.nodes)
        self.model, self.binary, self.input_shape = model, binary, input_shape
        self.layers: dict[str, Layer] = {}
        self.values: dict[torch.fx.Node, str] = {}
        """Nodes that depend on the input: the layer that computes them."""
        self.constants: dict[torch.fx.Node, Any] = {}
        """Nodes that do not: what they are."""
        signature = exported.graph_signature
        state = {**exported.state_dict, **exported.constants}
        sources = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        for node in self.nodes:
            if node.op == "placeholder" and node.name in sources:
                self.constants[node] = state[sources[node.name]].detach()

    def convert(self) -> list[Layer]:
        output = next(node for node in self.nodes if node.op == "output")
        results = output.all_input_nodes
        if len(results) != 1 or results[0].op == "placeholder":
            raise CannotPack(
                f"the model returns {len(results)} tensors; a packed network has one output, the logits"
            )
        alive = {results[0]}
        for node in reversed(self.nodes):
            if node in alive:
                alive.update(node.all_input_nodes)
        needed = [node for node in self.nodes if node in alive and node not in self.constants]
        self._refuse_unknown(needed)
        for node in needed:
            self._convert(node)
        if results[0] not in self.values:
            raise CannotPack("the output of the model does not depend on its input")
        return list(self.layers.values())

    def _refuse_unknown(self, nodes: list[torch.fx.Node]) -> None:
        """Operators without a counterpart, all of them at once, before any detail of the others."""
        on_input: set[torch.fx.Node] = set()
        unknown: dict[str, torch.fx.Node] = {}
        for node in nodes:
            if node.op == "placeholder" or any(source in on_input for source in node.all_input_nodes):
                on_input.add(node)
                if node.op == "call_function" and operator_name(node) not in OPERATORS:
                    unknown.setdefault(operator_name(node), node)
        if unknown:
            # The one that a remedy is known for says most.
            first, *others = sorted(unknown, key=lambda name: name not in REMEDIES)
            remedy = REMEDIES.get(first, "docs/format.md lists the ops that do")
            rest = f". Nor have {', '.join(others)}" if others else ""
            self.refuse(unknown[first], f"has no counterpart in a packed network; {remedy}{rest}")

    def _convert(self, node: torch.fx.Node) -> None:
        if node.op == "placeholder":
            self.values[node] = INPUT
            if len(self.input_shape) == 1:
                # The input of a file is always a map; a vector is a map of one pixel.
                self.values[node] = self.add(
                    "flatten", node, [INPUT], shape=self.input_shape, name="input.flatten"
                )
        elif node.op != "call_function":
            self.refuse(node, f"{node.op} cannot be packed")
        elif not any(source in self.values for source in node.all_input_nodes):
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: self.constants[n])
            self.constants[node] = node.target(*args, **kwargs)  # type: ignore[operator]
        else:
            self.values[node] = OPERATORS[operator_name(node)](self, node)

    def arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """Arguments by name with defaults; constants in place of the nodes that hold them."""
        schema = node.target._schema.arguments  # type: ignore[union-attr]
        given = dict(zip([argument.name for argument in schema], node.args, strict=False)) | dict(node.kwargs)
        named = {
            a.name: given.get(a.name, a.default_value if a.has_default_value() else None) for a in schema
        }
        return torch.fx.node.map_arg(named, lambda n: self.constants.get(n, n))

    def value(self, node: Any, user: torch.fx.Node) -> str:
        """The layer that computes this argument of `user`."""
        if not isinstance(node, torch.fx.Node) or node not in self.values:
            self.refuse(user, "mixes its input with a constant in a way that cannot be packed")
        return self.values[node]

    def shape(self, name: str) -> Shape:
        if name != INPUT:
            return self.layers[name].shape
        return input_map(self.input_shape)

    def path(self, node: torch.fx.Node) -> str:
        """Of the module whose forward called the operator."""
        stack = list((node.meta.get("nn_module_stack") or {"": ("", None)}).values())
        return re.sub(r"@\d+", "", stack[-1][0])

    def refuse(self, node: torch.fx.Node, reason: str) -> Any:
        path = self.path(node) or "the forward of the model"
        raise CannotPack(f"{path}: {str(node.target).removesuffix('.default')} {reason}")

    def add(
        self,
        op: str,
        node: torch.fx.Node,
        inputs: list[str],
        tensors: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
        name: str = "",
        **attributes: Any,
    ) -> str:
        """A new layer under a name of its own; its shape is that of the node unless given."""
        if not name:
            path = self.path(node)
            leaf = path and not any(self.model.get_submodule(path).children())
            leaf = leaf or path in self.binary
            name = path if leaf else f"{path}.{op}".lstrip(".")
        unique, n = name, 1
        while unique in self.layers or unique == INPUT:
            n += 1
            unique = f"{name}@{n}"
        if shape is None:
            shape = as_value(node.meta["val"].shape[1:])
        self.layers[unique] = Layer(op, unique, tuple(inputs), attributes, dict(tensors or {}), shape)
        return unique

    def add_weighted(self, op: str, node: torch.fx.Node, source: str, **attributes: Any) -> str:
        """A convolution or linear layer, binary or real; `op` is "conv" or "linear"."""
        if self.path(node) in self.binary:
            return add_binary(self, op, node, source, attributes)
        weight, bias = self.arguments(node)["weight"], self.arguments(node)["bias"]
        if not isinstance(weight, Tensor) or not isinstance(bias, Tensor | None):
            self.refuse(node, "has weights that depend on the input")
        weight = weight.unsqueeze(2) if weight.dim() == 3 else weight  # of one row
        tensors = {"weight": weight.float().cpu().numpy(), "bias": np.zeros(len(weight), np.float32)}
        if bias is not None:
            tensors["bias"] = real_vector(bias.cpu())
        return self.add(op, node, [source], tensors, **attributes)


def with_tensors(layer: Layer, **tensors: Any) -> Layer:
    """The same layer with some tensors replaced."""
    return dataclasses.replace(layer, tensors={**layer.tensors, **tensors})
