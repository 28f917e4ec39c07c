"""Real weights from elsewhere: state dicts of torchvision, timm and others, matched to a network by name and shape.

    match = take_(network, read(path), path)      # the real network, before it is made binary

Files are safetensors, or state dicts of torch.save that are read with weights_only=True: nothing in them is run. What
was taken, what the network keeps and what the file has besides are told. A file that fits too little is refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from latentbit.binarize.marking import is_mark
from latentbit.checkpoints import checkpoint
from latentbit.checkpoints.checkpoint import CheckpointError

ENOUGH = 0.8
"""Share of the weights of convolutions and linear layers, the classifier left out, that a file must have."""
WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training scripts keep the state dict."""
PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel and torch.compile put in front of every name."""
SHOWN = 4

STEM = {"conv1": "stem.conv", "bn1": "stem.norm"}
IN_A_BLOCK = re.compile(r"layer(\d+)\.(\d+)\.(conv|bn|downsample\.)(\d+)\.(\w+)")
"""Names of torchvision and timm for basic blocks."""


@dataclass(frozen=True)
class Match:
    """What a file and a network have in common. Statistics count as tensors, not as weights."""

    source: str
    taken: tuple[str, ...]
    """Tensors of the network that the file had."""
    fresh: tuple[str, ...]
    """Tensors that the network keeps as they were, with the reason where there is one."""
    unused: tuple[str, ...]
    """Tensors of the file that the network has no place for."""
    share: float
    """Of the weights of convolutions and linear layers, the classifier left out, that were taken."""

    def lines(self) -> list[str]:
        """For a user to read."""
        found = [f"start: {len(self.taken)} tensors of {self.source}, {self.share:.1%} of the weights"]
        if self.fresh:
            found.append(f"  fresh: {_some(self.fresh)}")
        if self.unused:
            found.append(f"  not used: {_some(self.unused)}")
        return found

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "share": self.share, "taken": len(self.taken)} | {
            "fresh": list(self.fresh),
            "unused": list(self.unused),
        }


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by their names, without what training scripts wrap around them."""
    found = checkpoint.tensors_in(path) if path.suffix == ".safetensors" else _state_dict(path)
    for prefix in PREFIXES:
        if found and all(name.startswith(prefix) for name in found):
            found = {name.removeprefix(prefix): value for name, value in found.items()}
    return found


def _state_dict(path: Path) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:
        raise CheckpointError(
            f"{path} holds more than tensors, and its pickle could run code: it is not read. Where you trust it, save "
            "its weights alone: torch.save(model.state_dict(), FILE), or as safetensors"
        ) from None
    except (RuntimeError, OSError, ValueError, EOFError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} is truncated or not a file of torch.save: {reason}") from None
    for key in WRAPPERS:
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
            break
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds a {type(found).__name__}, not a state dict")
    tensors = {str(name): value for name, value in found.items() if isinstance(value, Tensor)}
    if not tensors:
        raise CheckpointError(
            f"{path} holds no tensors by name (it has {_some(tuple(map(str, found)))}): give a state dict"
        )
    return tensors


def _as_ours(name: str, value: Tensor) -> str:
    """A name of torchvision's ResNets as models.resnet has it: two of our blocks make one of theirs."""
    layer, _, tensor = name.partition(".")
    if layer in STEM:
        return f"{STEM[layer]}.{tensor}"
    if not (found := IN_A_BLOCK.fullmatch(name)):
        return name
    stage, block, kind, number, tensor = found.groups()
    second = kind != "downsample." and number == "2"
    part = {"conv": "conv", "bn": "norm"}.get(kind) or f"shortcut.{'conv' if value.dim() == 4 else 'norm'}"
    return f"stages.{int(stage) - 1}.{2 * int(block) + second}.{part}.{tensor}"


@torch.no_grad()
def take_(network: nn.Module, tensors: dict[str, Tensor], source: Path) -> Match:
    """Copy into a real network what fits it by name and shape; CheckpointError if that is too little."""
    if any(is_mark(name) for name in tensors):
        raise CheckpointError(f"{source} is of a binary network: read it with latentbit.load")
    own = network.state_dict()
    maps = (
        {name: name for name in tensors},
        {name: _as_ours(name, value) for name, value in tensors.items()},
    )
    names = max(maps, key=lambda names: sum(_fits(own, names[name], tensors[name]) for name in tensors))
    theirs = {ours: name for name, ours in names.items()}
    taken = [name for name in own if name in theirs and _fits(own, name, tensors[theirs[name]])]
    fresh = [
        f"{name} ({_shape(own[name])}, {_shape(tensors[theirs[name]])} there)" if name in theirs else name
        for name in own
        if name not in taken and not name.endswith("num_batches_tracked")
    ]
    unused = [name for name in tensors if names[name] not in own]
    share = _share(network, set(taken))
    match = Match(source.name, tuple(taken), tuple(fresh), tuple(unused), share)
    if share < ENOUGH:
        raise CheckpointError(
            f"{source} fits {type(network).__name__} too little: {share:.0%} of the weights, {ENOUGH:.0%} are needed. "
            f"The network lacks {_some(match.fresh)}; the file has {_some(match.unused or tuple(tensors))}. Choose the "
            "network that the file is of, or rename its tensors"
        )
    for name in taken:
        own[name].copy_(tensors[theirs[name]])
    return match


def _fits(own: dict[str, Tensor], name: str, value: Tensor) -> bool:
    return name in own and own[name].shape == value.shape


def _shape(value: Tensor) -> str:
    return " x ".join(map(str, value.shape)) or "1"


def _share(network: nn.Module, taken: set[str]) -> float:
    weights = {name: p.numel() for name, p in network.named_parameters() if p.dim() > 1}
    linears = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if len(weights) > 1 and linears:
        weights.pop(f"{linears[-1]}.weight", None)  # the classes of the file need not be ours
    return sum(n for name, n in weights.items() if name in taken) / max(1, sum(weights.values()))
