"""binarize_: swap the layers of any nn.Module for binary ones, in place.

First conv and last linear stay real by default, as in nearly every binary network. The swap adopts the
Parameters themselves, so an optimizer built before it and tied weights keep working.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from latentbit import methods
from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS, BinaryConv2d, BinaryLinear
from latentbit.methods.parts.binarizer import Binarizer

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

    def __str__(self) -> str:
        different = list(dict.fromkeys(self.methods))
        used = f"method {different[0]}" if len(different) == 1 else f"{len(different)} methods"
        lines = [f"binarized {len(self.swapped)} layers with {used}, kept {len(self.kept)} real"]
        for name, method in zip(self.swapped, self.methods, strict=True):
            lines.append(f"  binary  {name}" + (f"  {method}" if len(different) > 1 else ""))
        lines += [f"  real    {name}  ({reason})" for name, reason in self.kept]
        return "\n".join(lines)


def first_and_last(layers: Layers) -> set[str]:
    """The first convolution (or, without one, the first layer) and the last linear layer, in module order."""
    convs = [name for name, layer in layers.items() if isinstance(layer, nn.Conv2d)]
    linears = [name for name, layer in layers.items() if isinstance(layer, nn.Linear)]
    names = list(layers)
    return set((convs or names)[:1] + (linears or names)[-1:])


def binarize_(
    model: nn.Module,
    method: Method | Mapping[str, Method] = "sign",
    keep: Keep = first_and_last,
    only: Only | None = None,
) -> Swapped:
    """Swap the Conv2d and Linear layers of `model` for binary ones and say what was done.

    `method` is a name ("irnet"), a method with options (IRNet(t_min=0.1)), an object of a class of your own, or a
    choice per layer: {"stages.0.*": Sign(), "*": IRNet()}, names and globs, where the first that matches counts.
    `keep` names the layers that stay real: a function of all candidates {name: layer}, or a list of names and
    globs ("head", "stem.*"). `only` narrows the candidates: a predicate (name, layer), or names and globs.
    A model may list layers that must stay real in an attribute `keep_real` (names and globs).
    """
    table = method if isinstance(method, Mapping) else {"*": method}
    chosen_methods = {pattern: _method(one) for pattern, one in table.items()}
    if isinstance(model, nn.Conv2d | nn.Linear):
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
    for name, one in zip(swapped, used, strict=True):
        _replace(model, candidates[name], one)
    return Swapped(tuple(swapped), tuple(map(str, used)), tuple(kept + list(real.items())))


@torch.no_grad()
def constant_inputs(model: nn.Module, batch: Tensor) -> list[str]:
    """Names of binary layers that see only one sign for this batch and so pass on nothing of it.

    The usual cause is a ReLU in front: sign(relu(x)) is +1 everywhere. Put a BatchNorm or a PReLU there instead.
    """
    silent: list[str] = []
    modes = {module: module.training for module in model.modules()}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, BINARY_LAYERS):

            def look(layer: nn.Module, args: tuple[Tensor, ...], name: str = name) -> None:
                if bool((args[0] >= 0).all()) or bool((args[0] < 0).all()):
                    silent.append(name)

            handles.append(module.register_forward_pre_hook(look))
    try:
        model.eval()(batch)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return list(dict.fromkeys(silent))


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
        if type(module) in (nn.Conv2d, nn.Linear):
            if not module.weight.is_floating_point():
                raise CannotBinarize(f"{name} has weights of {module.weight.dtype}: binarize a float model")
            found[name] = module
        elif isinstance(module, BINARY_LAYERS):
            kept.append((name, "binary already"))
        elif isinstance(module, nn.Conv2d | nn.Linear):
            kept.append((name, f"{type(module).__name__} overrides {type(module).__mro__[1].__name__}"))
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
    return f"{type(model).__name__} holds no nn.Conv2d or nn.Linear to swap" + (
        f": {listed}" if listed else ""
    )


def _replace(model: nn.Module, layer: nn.Module, method: Binarizer) -> None:
    """Put one binary layer at every place where `layer` stands: a module may be used under several names."""
    if isinstance(layer, nn.Conv2d):
        binary: nn.Module = BinaryConv2d.from_float(layer, method)
    else:
        assert isinstance(layer, nn.Linear)
        binary = BinaryLinear.from_float(layer, method)
    for parent in model.modules():
        for child_name, child in parent._modules.items():  # named_children() would skip the second name
            if child is layer:
                setattr(parent, child_name, binary)
