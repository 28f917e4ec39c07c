"""The networks by name: a function marked `@network` builds one, `create` calls it.

A function of the user's own needs no mark, its name is `my_file.py:my_function` or `my_module:my_function`.
"""

import inspect
from collections.abc import Callable
from typing import Literal, TypeVar, get_args

from torch import nn

from latentbit.errors import LatentbitError, nearest
from latentbit.imports import find_import, is_import

Build = TypeVar("Build", bound=Callable[..., nn.Module])

_NETWORKS: dict[str, Callable[..., nn.Module]] = {}


class UnknownNetwork(LatentbitError):
    """No network of that name, or no such option."""


def network(build: Build) -> Build:
    """Make `build(num_classes=..., in_channels=..., **options)` known by its own name."""
    _NETWORKS[build.__name__] = build
    return build


def names() -> list[str]:
    """Every network there is."""
    return sorted(_NETWORKS)


def find(name: str) -> Callable[..., nn.Module]:
    """What builds the network called `name`; `my_package.my_module:my_function` is imported."""
    if is_import(name):
        build = find_import(name)
        takes = inspect.signature(build).parameters if callable(build) else {}
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes.values()):
            return build
        if not {"num_classes", "in_channels"} <= set(takes):
            raise UnknownNetwork(
                f"{name} is not a network: it must be callable as f(num_classes=, in_channels=)"
            )
        return build
    if name not in _NETWORKS:
        hint = nearest(name, names()) or "."
        raise UnknownNetwork(f"no network {name!r}{hint} Networks: {', '.join(names())}")
    return _NETWORKS[name]


def create(name: str, num_classes: int | None = None, in_channels: int = 3, **options: object) -> nn.Module:
    """The network called `name`, real-valued and freshly initialised; `options` are its own keywords.

    Without `num_classes` it has those of its data set: 10, or 1000 for the ImageNet networks. A network of the user's
    own that names no default has 10.
    """
    build = find(name)
    known = _options(build)
    for key in options:
        if known is not None and key not in known:
            raise UnknownNetwork(f"network {name!r} has no option {key!r}; its options: {', '.join(known)}")
    takes = inspect.signature(build).parameters.get("num_classes")
    if num_classes is None and takes is not None and takes.default is inspect.Parameter.empty:
        num_classes = 10
    if num_classes is not None:
        options["num_classes"] = num_classes
    return build(in_channels=in_channels, **options)


def own_input(name: str) -> int:
    """Side of the images that a network is made for: 224 for those of 1000 classes, else 32."""
    classes = inspect.signature(find(name)).parameters.get("num_classes")
    return 224 if classes is not None and classes.default == 1000 else 32


def _options(build: Callable[..., nn.Module]) -> list[str] | None:
    """Keywords of a network beside classes and channels; those of **style: Unpack[Style] one by one.

    None if it takes any.
    """
    known: list[str] = []
    for key, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            unpacked = get_args(parameter.annotation)
            if not unpacked:
                return None
            known += unpacked[0].__annotations__
        elif key not in ("num_classes", "in_channels"):
            known.append(key)
    return known


Fan = Literal["fan_out", "fan_in"]


def initialise_(model: nn.Module, fan: Fan = "fan_out", gamma: float = 1.0) -> None:
    """Convolutions: He et al. 2015 (normal, gain of ReLU). Linears: N(0, 0.01), zero bias; with fan_in like those.

    `gamma` is what the scales of BatchNorm over maps start at.
    """
    if fan not in get_args(Fan):
        raise LatentbitError(f"init {fan!r}: must be one of {', '.join(get_args(Fan))}")
    for module in model.modules():
        if isinstance(module, nn.Conv2d) or (fan == "fan_in" and isinstance(module, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, mode=fan, nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.weight, gamma)
