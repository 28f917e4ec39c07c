"""binarize_: swap the layers of any nn.Module for binary ones, in place.

First conv and last linear stay real by default, as in nearly every binary network. The swap adopts the
Parameters themselves, so an optimizer built before it and tied weights keep working.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from latentbit import methods
from latentbit.binarize import feeding
from latentbit.binarize.feeding import Replacement
from latentbit.binarize.marking import mark_config_, note_
from latentbit.errors import LatentbitError, LatentbitWarning
from latentbit.layers import BINARY_FORMS, BINARY_LAYERS
from latentbit.methods.parts.binarizer import Binarizer, Unsuitable

Layers = dict[str, nn.Module]
Keep = Callable[[Layers], Iterable[str]] | Iterable[str]
Only = Callable[[str, nn.Module], bool] | Iterable[str]
Method = str | Binarizer


class CannotBinarize(LatentbitError):
    """The model holds nothing to swap, or a layer that cannot be swapped."""


@dataclass(frozen=True)
class Swapped:
    """What binarize_ did: names of the layers it swapped, and of those it kept with the reason."""

    swapped: tuple[str, ...]
    methods: tuple[str, ...]
    """Of each swapped layer, with the options that were set: "irnet (t_min=0.1)"."""
    kept: tuple[tuple[str, str], ...]
    replaced: tuple[tuple[str, str], ...] = ()
    """Activations that others stand for now: ("relu", "ReLU -> PReLU(16)")."""
    blocked: tuple[tuple[str, str], ...] = ()
    """Binary layers that see no negative number, each with the activation in front of it."""
    traced: bool = True
    """Whether the forward could be traced, so that `blocked` knows all of them."""

    def __str__(self) -> str:
        different = list(dict.fromkeys(self.methods))
        used = f"method {different[0]}" if len(different) == 1 else f"{len(different)} methods"
        lines = [f"binarized {len(self.swapped)} layers with {used}, kept {len(self.kept)} real"]
        for name, method in zip(self.swapped, self.methods, strict=True):
            lines.append(f"  binary  {name}" + (f"  {method}" if len(different) > 1 else ""))
        lines += [f"  real    {name}  ({reason})" for name, reason in self.kept]
        lines += [f"  instead {name}  {what}" for name, what in self.replaced]
        lines += [
            f"  WARNING {name} sees +1 everywhere: {by} in front of it is never negative; {_REMEDY}"
            for name, by in self.blocked
        ]
        if not self.traced:
            lines.append(
                "  WARNING the forward cannot be traced, so that a ReLU in front of a binary layer is not found here: "
                "call latentbit.constant_inputs(model, images)"
            )
        return "\n".join(lines)


WITHOUT_BINARY_FORM = (nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.RNNBase, nn.Bilinear)
"""Layers with weights that stay real, and are named with those that do. The stock ones that swap come before."""
FEW_BITS = 16
"""Fewer may all be the same by chance."""
_REMEDY = 'put nn.PReLU or a BatchNorm there, or let binarize_(activation="prelu") replace what is a module'


def first_and_last(layers: Layers) -> set[str]:
    """The first convolution (or, without one, the first layer) and the last linear layer, in module order."""
    convs = [name for name, layer in layers.items() if isinstance(layer, nn.Conv1d | nn.Conv2d)]
    linears = [name for name, layer in layers.items() if isinstance(layer, nn.Linear)]
    names = list(layers)
    return set((convs or names)[:1] + (linears or names)[-1:])


def binarize_(
    model: nn.Module,
    method: Method | Mapping[str, Method] = "sign",
    keep: Keep = first_and_last,
    only: Only | None = None,
    activation: Replacement | None = None,
) -> Swapped:
    """Swap the Conv1d, Conv2d and Linear layers of `model` for binary ones and say what was done.

    `method` is a name ("irnet"), a method with options (IRNet(t_min=0.1)), an object of a class of your own, or a
    choice per layer: {"stages.0.*": Sign(), "*": IRNet()}, names and globs, where the first that matches counts.
    `keep` names the layers that stay real: a function of all candidates {name: layer}, or a list of names and
    globs ("head", "stem.*"). `only` narrows the candidates: a predicate (name, layer), or names and globs.
    A model may list layers that must stay real in an attribute `keep_real` (names and globs).
    `activation` stands for every ReLU in front of a binary layer, whose input would be +1 everywhere: "prelu", "rprelu"
    (ReActNet's) or "hardtanh". Print the result to see what was swapped, kept and replaced.
    """
    table = method if isinstance(method, Mapping) else {"*": method}
    chosen_methods = {pattern: _method(one) for pattern, one in table.items()}
    if isinstance(model, tuple(BINARY_FORMS)):
        raise CannotBinarize(
            f"the model is a single {type(model).__name__}: wrap it in nn.Sequential to swap it"
        )
    candidates, kept = _candidates(model)
    real = {name: "kept by keep=" for name in _kept_names(keep, candidates)}
    real |= {
        name: "keep_real of the model" for name in _matching(getattr(model, "keep_real", ()), candidates)
    }
    if only is not None:
        chosen = _chosen_names(only, candidates)
        real = {name: "left out by only=" for name in candidates if name not in chosen} | real
    patterns = _first_matches(table, candidates)
    real = {name: "no pattern of method= matches" for name in candidates if name not in patterns} | real
    swapped = [name for name in candidates if name not in real]
    if not swapped:
        raise CannotBinarize(_nothing_to_swap(model, candidates, real, kept))
    used = [chosen_methods[patterns[name]] for name in swapped]
    # All of them first: a method that refuses a layer then leaves the model as it was.
    binary = {name: _binary(name, candidates[name], one) for name, one in zip(swapped, used, strict=True)}
    for name, layer in binary.items():
        _put(model, candidates[name], layer)
    _read_through_layers(model)
    note_(model)
    mark_config_(model)
    replaced = feeding.replace_(model, activation) if activation is not None else []
    found = feeding.blocked(model)
    blocked = {one.layer: one.by for one in found or []} | feeding.blocked_in_encoders(model)
    return Swapped(
        tuple(swapped),
        tuple(map(str, used)),
        tuple(kept + list(real.items())),
        tuple(replaced),
        tuple(blocked.items()),
        found is not None,
    )


@torch.no_grad()
def constant_inputs(model: nn.Module, batch: Tensor) -> list[str]:
    """Names of binary layers that see only one sign for this batch and so pass on nothing of it.

    The usual cause is a ReLU in front: sign(relu(x)) is +1 everywhere. Put a BatchNorm or a PReLU there instead.
    """
    modes = {module: module.training for module in model.modules()}
    try:
        with Watch(model) as watch:
            model.eval()(batch)
    finally:
        for module, mode in modes.items():
            module.training = mode
    return watch.constant()


class Watch:
    """Looks at the bits that enter each binary layer during the forwards inside a `with`, as its method makes them."""

    def __init__(self, model: nn.Module) -> None:
        self.layers = {n: m for n, m in model.named_modules() if isinstance(m, BINARY_LAYERS)}
        self.extremes: dict[str, list[Tensor]] = {}

    def __enter__(self) -> Self:
        self.handles = [
            layer.register_forward_pre_hook(partial(self._look, name)) for name, layer in self.layers.items()
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _look(self, name: str, layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        with torch.no_grad():
            bits = self.layers[name].binarizer.input(args[0])
        if bits.numel() >= FEW_BITS:
            self.extremes.setdefault(name, []).append(torch.stack(bits.aminmax()))

    def constant(self) -> list[str]:
        """Layers that saw one and the same bit everywhere."""
        found = {name: torch.stack(seen) for name, seen in self.extremes.items()}
        return [name for name, seen in found.items() if bool(seen.min() == seen.max())]


def warn_of_constant(names: list[str]) -> None:
    """Say which layers saw one sign only, and what to do."""
    if names:
        which = (
            f"binary layer {names[0]} sees" if len(names) == 1 else f"binary layers {', '.join(names)} see"
        )
        warnings.warn(
            f"{which} the same sign everywhere in the first batch, so nothing of the image gets through. "
            f"The usual cause is a ReLU in front: {_REMEDY}",
            LatentbitWarning,
            stacklevel=4,
        )


def _read_through_layers(model: nn.Module) -> None:
    """Keep containers of torch from reading the weights of their layers themselves."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(
            isinstance(m, BINARY_LAYERS) for m in module.modules()
        ):
            module.use_nested_tensor = False  # only the path that reads them takes nested tensors


def _candidates(model: nn.Module) -> tuple[Layers, list[tuple[str, str]]]:
    """Layers that can be swapped, in module order, and those that cannot, with the reason."""
    found: Layers = {}
    kept: list[tuple[str, str]] = []
    for name, module in model.named_modules():
        if any(is_lazy(p) for p in module.parameters(recurse=False)):
            raise CannotBinarize(
                f"{name} ({type(module).__name__}) is not initialised yet: run one batch through the model first"
            )
        if type(module).__module__.startswith(("torch.ao.nn", "torch.nn.quantized", "torchao.")):
            raise CannotBinarize(
                f"{name} ({type(module).__name__}) is already quantised: binarize the float model instead"
            )
        if type(module) in BINARY_FORMS and not isinstance(module.weight, nn.Parameter):
            kept.append((name, "its weight is computed (weight_norm or the like): remove that first"))
        elif type(module) in BINARY_FORMS:
            assert isinstance(module.weight, nn.Parameter)
            if not module.weight.is_floating_point():
                raise CannotBinarize(f"{name} has weights of {module.weight.dtype}: binarize a float model")
            found[name] = module
        elif isinstance(module, BINARY_LAYERS):
            kept.append((name, "binary already"))
        elif parametrize.is_parametrized(module):
            kept.append((name, "its weight is parametrized: remove_parametrizations first"))
        elif isinstance(module, tuple(BINARY_FORMS)):
            kept.append((name, f"{type(module).__name__} overrides {type(module).__mro__[1].__name__}"))
        elif isinstance(module, WITHOUT_BINARY_FORM):
            kept.append((name, f"{type(module).__name__} has no binary form"))
    return found, kept


def _method(chosen: Method) -> Binarizer:
    if isinstance(chosen, Binarizer):
        return chosen
    if isinstance(chosen, str):
        return methods.create(chosen)
    hint = f": write {chosen.__name__}()" if isinstance(chosen, type) else ""
    raise CannotBinarize(f"method {chosen!r} is neither a name nor a Binarizer{hint}")


def _first_matches(patterns: Iterable[str], layers: Layers) -> dict[str, str]:
    """The first pattern that matches each layer. A pattern that no layer gets is a slip, not a wish."""
    first: dict[str, str] = {}
    for pattern in patterns:
        matches = _every_pattern_matches("method", [pattern], layers) if layers else []
        new = [name for name in matches if name not in first]
        if matches and not new:
            raise CannotBinarize(
                f"method={pattern!r} comes too late: patterns before it match every layer that it does"
            )
        first |= dict.fromkeys(new, pattern)
    return first


def _matching(patterns: Iterable[str], layers: Layers) -> list[str]:
    return [name for name in layers if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _kept_names(keep: Keep, layers: Layers) -> list[str]:
    if callable(keep):
        return [name for name in layers if name in set(keep(layers))]
    return _every_pattern_matches("keep", keep, layers)


def _chosen_names(only: Only, layers: Layers) -> list[str]:
    if callable(only):
        return [name for name, layer in layers.items() if only(name, layer)]
    return _every_pattern_matches("only", only, layers)


def _every_pattern_matches(argument: str, patterns: Iterable[str], layers: Layers) -> list[str]:
    """A misspelt name must not silently binarize the layer it meant to keep."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not _matching([pattern], layers):
            raise CannotBinarize(f"{argument}={pattern!r} matches no layer; layers: {', '.join(layers)}")
    return _matching(patterns, layers)


def _nothing_to_swap(
    model: nn.Module, candidates: Layers, real: dict[str, str], kept: list[tuple[str, str]]
) -> str:
    if candidates:
        reasons = [*real.items(), *kept]
        listed = ", ".join(f"{name} ({reason})" for name, reason in reasons)
        return f"every layer of {type(model).__name__} stays real: {listed}. Pass keep=[] to swap them all"
    listed = ", ".join(f"{name} ({reason})" for name, reason in kept)
    return f"{type(model).__name__} holds no nn.Conv1d, nn.Conv2d or nn.Linear to swap" + (
        f": {listed}" if listed else ""
    )


def _binary(name: str, layer: nn.Module, method: Binarizer) -> nn.Module:
    try:
        return BINARY_FORMS[type(layer)].from_float(layer, method)  # type: ignore[arg-type]
    except Unsuitable as error:
        raise Unsuitable(f"{name}: {error}") from None


def _put(model: nn.Module, layer: nn.Module, binary: nn.Module) -> None:
    """At every place where `layer` stands: a module may be used under several names."""
    for parent in model.modules():
        for child_name, child in parent._modules.items():  # named_children() would skip the second name
            if child is layer:
                setattr(parent, child_name, binary)
