"""Training state on disk: tensors and numbers in one safetensors file, no pickle.

A checkpoint is written whole (temporary, fsync, rename) and carries a digest of all it holds, numbers included, so
a truncated, damaged, edited or foreign file is refused by name. Two are kept: if the newest is broken, resume takes
the one before.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from latentbit.atomic import atomic_write
from latentbit.binarize.marking import is_mark
from latentbit.errors import LatentbitError
from latentbit.views import TwoView

FORMAT = "latentbit-checkpoint-2"
MODEL_FORMAT = "latentbit-model-2"
OLD = {"latentbit-checkpoint-1": FORMAT, "latentbit-model-1": MODEL_FORMAT}
"""Formats of latentbit 0.1.0, whose digest covers the tensors only."""
KEPT = 2


class CheckpointError(LatentbitError):
    """A file that is not a whole checkpoint of this run's network."""


@dataclass
class Position:
    """Where training stands: `step` steps of epoch `epoch` (from 0) are done."""

    epoch: int = 0
    step: int = 0
    best: float = -1.0
    """Best accuracy of the binary view so far."""
    sums: dict[str, float] = field(default_factory=dict)
    """Of the epoch under way: every loss term times its images, correct answers, images."""
    seconds: float = 0.0
    """That the steps of this epoch took."""


class Restored(NamedTuple):
    """What a checkpoint gives back beside the states of objective and optimizer."""

    position: Position
    extra: dict[str, Tensor]
    recipe: str
    """The recipe that the training was run by, as TOML; empty in checkpoints of 0.1.0."""


def own_state(objective: nn.Module) -> dict[str, Tensor]:
    """State dict without the second name of Parameters that two views share."""
    shared: set[str] = set()
    for name, module in objective.named_modules():
        if isinstance(module, TwoView):
            prefix = f"{name}.latent." if name else "latent."
            shared |= {prefix + key for key, _ in module.latent.named_parameters()}
    return {key: value for key, value in _plain(objective).items() if key not in shared}


def _plain(model: nn.Module) -> dict[str, Tensor]:
    """A state dict without the mark of binary networks: the file itself says what it is."""
    return {key: value for key, value in model.state_dict().items() if not is_mark(key)}


@torch.no_grad()
def load_own_state(objective: nn.Module, state: dict[str, Tensor], source: Path) -> None:
    """Copy back what own_state gave: copied, never assigned, so that the views go on sharing."""
    mine = own_state(objective)
    if mine.keys() != state.keys():
        odd = sorted(mine.keys() ^ state.keys())
        raise CheckpointError(
            f"{source} belongs to another network or recipe: {odd[0]} is in one of them only"
        )
    for key, value in mine.items():
        if value.shape != state[key].shape:
            raise CheckpointError(
                f"{source}: {key} is {tuple(state[key].shape)}, this network has {tuple(value.shape)}"
            )
        value.copy_(state[key])
    for module in objective.modules():
        if isinstance(module, TwoView):
            module.check_shared()


def write(
    folder: Path,
    position: Position,
    objective: nn.Module,
    optimizer: Optimizer,
    extra: dict[str, Tensor],
    recipe: str = "",
) -> Path:
    """Save all that training needs to go on bit-exactly; older checkpoints beyond two are removed."""
    tensors = {f"objective.{key}": value for key, value in own_state(objective).items()}
    tensors |= {f"extra.{key}": value for key, value in extra.items()}
    numbers: dict[str, dict[str, Any]] = {}
    state = optimizer.state_dict()
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{key}"] = value
            else:
                numbers.setdefault(str(index), {})[key] = value
    facts = {
        "position": asdict(position),
        "groups": state["param_groups"],
        "numbers": numbers,
        "recipe": recipe,
    }
    path = folder / f"{position.epoch:05d}-{position.step:06d}.safetensors"
    _save(path, tensors, {"format": FORMAT, "facts": json.dumps(facts)})
    for old in listed(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    return path


def read(path: Path, objective: nn.Module, optimizer: Optimizer) -> Restored:
    """Restore objective and optimizer from a checkpoint; gives what else it holds."""
    tensors, metadata = _load(path)
    if OLD.get(metadata.get("format", ""), metadata.get("format")) != FORMAT:
        raise CheckpointError(
            f"{path} is not a training checkpoint (its format is {metadata.get('format')!r})"
        )
    facts = json.loads(metadata["facts"])
    parts: dict[str, dict[str, Tensor]] = {"objective": {}, "optimizer": {}, "extra": {}}
    for key, value in tensors.items():
        part, _, rest = key.partition(".")
        parts[part][rest] = value
    load_own_state(objective, parts["objective"], path)
    entries: dict[int, dict[str, Any]] = {int(i): dict(numbers) for i, numbers in facts["numbers"].items()}
    for key, value in parts["optimizer"].items():
        index, _, name = key.partition(".")
        entries.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": entries, "param_groups": facts["groups"]})
    position = Position(**facts["position"])
    position.seconds += position.sums.pop("seconds", 0.0)  # where 0.1.0 kept them
    return Restored(position, parts["extra"], facts.get("recipe", ""))


def recipe_in(path: Path) -> str:
    """The recipe that a checkpoint was written under, as TOML; empty in checkpoints of 0.1.0."""
    return str(json.loads(_load(path)[1].get("facts", "{}")).get("recipe", ""))


def listed(folder: Path) -> list[Path]:
    """Checkpoints of a run, newest first."""
    return sorted(folder.glob("[0-9]*-[0-9]*.safetensors"), reverse=True)


def newest_whole(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that can be read, and what is wrong with those that were passed over."""
    broken = []
    for path in listed(folder):
        try:
            _load(path)
        except CheckpointError as error:
            broken.append(str(error))
        else:
            return path, broken
    return None, broken


def write_model(path: Path, model: nn.Module, facts: dict[str, Any]) -> None:
    """The plain state dict of a network, for shipping, packing and teaching."""
    _save(path, _plain(model), {"format": MODEL_FORMAT, "facts": json.dumps(facts)})


def read_model(path: Path, model: nn.Module) -> dict[str, Any]:
    """Load what write_model saved; gives its facts."""
    tensors, metadata = _load(path)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path} does not fit {type(model).__name__}: {reason}") from None
    return json.loads(metadata.get("facts", "{}"))


def tensors_in(path: Path) -> dict[str, Tensor]:
    """What a safetensors file holds, checked against its digest where it has one."""
    return _load(path)[0]


def fits(tensors: Mapping[str, Tensor], model: nn.Module) -> bool:
    """Whether these are all tensors of a network and no others, in its shapes."""
    own = _plain(model)
    return own.keys() == tensors.keys() and all(own[key].shape == tensors[key].shape for key in own)


def read_facts(path: Path) -> dict[str, Any]:
    """What write_model kept beside the weights."""
    return dict(json.loads(_load(path)[1].get("facts", "{}")))


def fingerprint(path: Path) -> str:
    """The digest of a file, as written when it was saved."""
    try:
        with safe_open(path, framework="pt") as opened:
            return str((opened.metadata() or {}).get("digest", ""))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _save(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    whole = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    with atomic_write(path) as file:
        file.write(save(whole, metadata | {"digest": _digest(whole, metadata)}))


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118, it is no dict
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is truncated or not a safetensors file: {error}") from None
    digest = metadata.pop("digest", None)
    ours = metadata.get("format") in (FORMAT, MODEL_FORMAT)
    covered = {} if metadata.get("format") in OLD else metadata
    if (ours or digest is not None) and digest != _digest(tensors, covered):
        raise CheckpointError(f"{path} is damaged or was edited: its content does not match its digest")
    return tensors, metadata


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for key in sorted(metadata):
        total.update(json.dumps([key, metadata[key]]).encode())
    for key in sorted(tensors):
        total.update(key.encode())
        total.update(tensors[key].reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
