"""What a network costs at inference: binary and real parameters, real and binary multiply-adds, the rest.

One image is run through a copy of the network and every operation is counted where it happens, functional
calls included. Units: 1 Mbit = 1e6 bits; MACs are multiply-adds of real convolutions and matrix products,
BOPs those of binary ones; element-wise work (one per value that BN, PReLU, an addition or a sign computes,
one per tap of a pool) stands on its own.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.methods.parts.binarizer import Deployed, NotDeployable

_KINDS: dict[type[nn.Module], str] = {
    nn.Conv1d: "conv 1d",
    nn.Conv3d: "conv 3d",
    nn.modules.conv._ConvTransposeNd: "transposed conv",
    nn.modules.conv._ConvNd: "conv",
    nn.Linear: "linear",
    nn.modules.batchnorm._BatchNorm: "batch norm",
    nn.PReLU: "prelu",
}


class CannotRun(LatentbitError):
    """The network does not take an input of the shape asked for."""


AMOUNTS = ("binary_params", "real_params", "macs", "bops", "elementwise")


@dataclass
class LayerCost:
    """What one kind of work costs in one module; zeros where it costs nothing."""

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    """Of the result, without the batch."""
    binary_params: int = 0
    real_params: int = 0
    macs: int = 0
    bops: int = 0
    elementwise: int = 0

    @property
    def n_bits(self) -> int:
        return self.binary_params + 32 * self.real_params

    def amounts(self) -> dict[str, int]:
        """What can be summed over layers."""
        return {name: getattr(self, name) for name in AMOUNTS} | {"n_bits": self.n_bits}


@dataclass(frozen=True)
class Cost:
    """The costs of all layers in the order in which they run, and their sums."""

    layers: tuple[LayerCost, ...]
    folded_scales: int
    """Scales of binary layers that vanish into the BatchNorm behind, which multiplies anyway."""

    def total(self, kind: str | None = None) -> LayerCost:
        """The sum over all layers, or over those of one kind."""
        total = LayerCost("total", kind or "all")
        for layer in self.layers:
            if kind in (None, layer.kind):
                for name in AMOUNTS:
                    setattr(total, name, getattr(total, name) + getattr(layer, name))
        return total

    def kinds(self) -> list[str]:
        """Every kind of layer or work, in order of first appearance."""
        return list(dict.fromkeys(layer.kind for layer in self.layers))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "layers": [asdict(layer) | {"n_bits": layer.n_bits} for layer in self.layers],
            "by_kind": {kind: self.total(kind).amounts() for kind in self.kinds()},
            "total": self.total().amounts(),
            "mbit": self.mbit,
            "float_mbit": self.float_mbit,
            "ratio": self.float_mbit / self.mbit,
            "folded_scales": self.folded_scales,
        }

    @property
    def mbit(self) -> float:
        return self.total().n_bits / 1e6

    @property
    def float_mbit(self) -> float:
        """The same network with real (FP32) weights only; binary layers then need no scales."""
        total = self.total()
        return 32 * (total.binary_params + total.real_params - self.total("scale").real_params) / 1e6


def count(model: nn.Module, input_shape: Sequence[int]) -> Cost:
    """The cost of `model` for one input of `input_shape` (channels, height, width); `model` stays as it is."""
    try:
        counter = _run(copy.deepcopy(model).to("meta"), input_shape)
    except Exception:  # a model that looks at values, which meta tensors do not have
        try:
            counter = _run(copy.deepcopy(model), input_shape)
        except RuntimeError as error:
            shape, reason = tuple(input_shape), str(error).splitlines()[0]
            raise CannotRun(f"{type(model).__name__} cannot run an input of {shape}: {reason}") from error
    return Cost(tuple(counter.rows.values()), counter.folded_scales)


def _run(model: nn.Module, input_shape: Sequence[int]) -> "_Counter":
    """Count one forward of `model`, which is spoilt by the hooks."""
    model.eval()
    first = next(model.parameters(), torch.empty(0))
    counter = _Counter(model)
    with torch.no_grad():
        x = torch.zeros(1, *input_shape, dtype=first.dtype, device=first.device)
        with counter:
            model(x)
        counter.add_parameters(model)
    return counter


class _Counter(TorchDispatchMode):
    """Sees every ATen operation; hooks on the modules tell on whose behalf it runs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], LayerCost] = {}
        self.folded_scales = 0
        self._running: list[tuple[str, nn.Module]] = []
        self._outputs: dict[str, int] = {}
        # Outputs of binary layers by id, with the layer's name: alpha times integers. Holding the tensor keeps
        # its id from being given to another one.
        self._scaled: dict[int, tuple[str, Tensor]] = {}
        self._folded: set[str] = set()
        for name, module in model.named_modules():
            module.register_forward_pre_hook(self._enter(name))
            module.register_forward_hook(self._leave)

    def _enter(self, name: str) -> Callable[..., None]:
        return lambda module, args: self._running.append((name, module))

    def _leave(self, module: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        name, _ = self._running.pop()
        if _is_binary(module):
            if _has_bits(module):
                self._add(name, "sign", args[0], elementwise=args[0].numel())
            self._outputs[name] = self._outputs.get(name, 0) + out.numel()
            self._scaled[id(out)] = (name, out)

    def _add(self, name: str, kind: str, result: Tensor | None = None, **amounts: int) -> None:
        row = self.rows.setdefault((name, kind), LayerCost(name, kind))
        if result is not None:
            row.shape = tuple(result.shape[1:])
        for key, amount in amounts.items():
            setattr(row, key, getattr(row, key) + amount)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        result = out[0] if isinstance(out, tuple | list) else out
        if self._running and isinstance(result, Tensor):
            packet = func.overloadpacket
            if packet in flop_registry:
                self._see_product(flop_registry[packet](*args, **kwargs, out_val=out) // 2, packet, result)
            elif not _is_binary(self._running[-1][1]):  # there it only imitates bits
                self._see_elementwise(func, packet.__name__, args, result)
        return out

    def _see_product(self, macs: int, packet: Any, result: Tensor) -> None:
        name, module = self._running[-1]
        if _has_bits(module) and macs == module.weight[0].numel() * result.numel():  # type: ignore[index]
            self._add(name, _kind(module), result, bops=macs)
        else:
            by_layer = isinstance(
                module, nn.modules.conv._ConvNd | nn.Linear
            )  # else by a function of its forward
            by_name = "conv" if "conv" in packet.__name__ else "linear"
            self._add(name, _kind(module).removeprefix("binary ") if by_layer else by_name, result, macs=macs)

    def _see_elementwise(self, func: Any, op: str, args: tuple[Any, ...], result: Tensor) -> None:
        name, _ = self._running[-1]
        if "batch_norm" in op:
            self._add(name, "batch norm", result, elementwise=result.numel())
            if id(args[0]) in self._scaled:
                self._folded.add(self._scaled[id(args[0])][0])
        elif op.startswith(("max_pool", "avg_pool")):
            window = args[1] if len(args[1]) > 1 else args[1] * 2
            self._add(name, "pool", result, elementwise=result.numel() * math.prod(window))
            if op.startswith("max") and id(args[0]) in self._scaled:  # alpha >= 0 passes through a maximum
                self._scaled[id(result)] = (self._scaled[id(args[0])][0], result)
        elif "adaptive" in op or op == "mean":
            self._add(name, "pool", result, elementwise=args[0].numel())
        elif torch.Tag.pointwise in func.tags or op == "_prelu_kernel":
            self._add(name, op.strip("_").removesuffix("_kernel"), result, elementwise=result.numel())

    def add_parameters(self, model: nn.Module) -> None:
        """Count every parameter once, also those of modules that did not run."""
        seen: set[int] = set()
        for name, module in model.named_modules():
            if _is_binary(module):
                self._add_scales(name, module)
            elif ".binarizer" in name:  # counted by what is left of it at inference
                continue
            for key, parameter in module.named_parameters(recurse=False):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    precision = "binary_params" if _is_binary(module) and key == "weight" else "real_params"
                    self._add(name, _kind(module), **{precision: parameter.numel()})

    def _add_scales(self, name: str, layer: nn.Module) -> None:
        """What a method keeps at inference beside one binary layer and its sign."""
        assert isinstance(layer, BINARY_LAYERS)
        kept: Deployed | None = None
        try:
            kept = layer.binarizer.deploy(layer.weight)
            scales = sum(part.scale.numel() for part in (kept, *kept.plus))
        except NotDeployable:
            scales = sum(p.numel() for p in layer.binarizer.parameters())
        if name in self._folded:
            self.folded_scales += scales
        else:
            self._add(name, "scale", real_params=scales, elementwise=self._outputs.get(name, 0))
        if kept is not None:
            self._add_kept(name, layer, kept)

    def _add_kept(self, name: str, layer: nn.Module, kept: Deployed) -> None:
        # A single threshold is the zero of sign itself.
        parts = (kept, *kept.plus)
        thresholds = sum(part.threshold.numel() for part in parts if part.threshold.numel() > 1)
        if thresholds:
            self._add(name, "threshold", real_params=thresholds)
        n_values = self._row(name, "sign").elementwise
        if kept.centred:  # summed, and subtracted from
            self._add(name, "mean of sample", elementwise=2 * n_values)
        if kept.cubic is not None:  # raised by two products, summed, and subtracted from
            self._add(name, "mean cube", real_params=kept.cubic.numel(), elementwise=4 * n_values)
        if kept.plus:  # binary layers beside the first, each with weights of its own
            n, kind = len(kept.plus), _kind(layer)
            assert isinstance(layer.weight, Tensor)
            params, bops = n * layer.weight.numel(), n * self._row(name, kind).bops
            self._add(name, kind, binary_params=params, bops=bops, elementwise=n * self._outputs.get(name, 0))

    def _row(self, name: str, kind: str) -> LayerCost:
        return self.rows.get((name, kind), LayerCost(name, kind))


def _is_binary(module: nn.Module) -> bool:
    return isinstance(module, BINARY_LAYERS) and module.view == "binary"


def _has_bits(module: nn.Module) -> bool:
    """Whether activations are binary too."""
    return _is_binary(module) and not module.binarizer.real_input  # type: ignore[union-attr]


def _kind(module: nn.Module) -> str:
    for cls, kind in _KINDS.items():
        if isinstance(module, cls):
            return f"binary {kind}" if _is_binary(module) else kind
    return type(module).__name__
