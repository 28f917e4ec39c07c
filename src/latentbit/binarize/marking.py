"""What the state dict of a binary network says about itself, so that a wrong network can refuse it.

W has the same keys and shapes with and without binary layers. `binarize_` notes in the metadata of the state dict which
layers are binary and by which method, and networks that it made check it when they load one. A network that latentbit
never saw ignores metadata and would take W for real weights: `mark_` adds a key, which it reports as unexpected. Models
of transformers carry the mark in their config, from the start.
"""

import copy
import json
from typing import Any

import torch
from torch import nn

from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS


class NotBinary(LatentbitError):
    """There is nothing to mark."""


KEY = "this_is_a_binary_network__load_it_after_latentbit_binarize_"


NOTE = "binary_layers"

BINARY_CONFIG = {
    "latentbit": "This is a binary network, and its weights are no real ones. latentbit.save(model, file) saves it, "
    "and latentbit.load(file, model) loads it into a model that is made from this config."
}
"""What config.json of transformers says. Without a quant_method, so that from_pretrained raises a ValueError."""


def note_(model: nn.Module) -> None:
    """From now on the state dicts of this model say in their metadata what is binary, and are checked for it."""
    if _add not in model._state_dict_hooks.values():
        model.register_state_dict_post_hook(_add)
        model.register_load_state_dict_pre_hook(_check)


def mark_config_(model: nn.Module) -> None:
    """Let from_pretrained of transformers refuse what save_pretrained will write.

    It ignores keys that it does not know, but not a config that says "quantized" without naming a method of its own.
    The config is copied first, because real networks may share it.
    """
    shared: dict[int, Any] = {
        id(module.config): module.config for module in model.modules() if _has_config(module)
    }
    for config in shared.values():
        own = copy.deepcopy(config)
        own.quantization_config = {**BINARY_CONFIG, "layers": sorted(described(model))}
        for module in model.modules():
            if getattr(module, "config", None) is config:
                module.config = own


def _has_config(module: nn.Module) -> bool:
    """Whether transformers would store its config."""
    return hasattr(module, "save_pretrained") and hasattr(getattr(module, "config", None), "to_dict")


def mark_(model: nn.Module) -> None:
    """Add a key to the state dicts of this binary network, so that a network without binary layers refuses them.

    Call it after binarize_, before torch.save or save_pretrained.
    """
    if not described(model):
        raise NotBinary(f"{type(model).__name__} has no binary layer: call latentbit.binarize_ first")
    note_(model)
    model.marks_its_state = True  # type: ignore[assignment]


def is_mark(key: str) -> bool:
    """Whether a key of a state dict is the mark of a network or of a part of it."""
    return key == KEY or key.endswith(f".{KEY}")


def described(model: nn.Module) -> dict[str, dict[str, Any]]:
    """Binary layers by name: method and options."""
    return {
        name: {"method": layer.binarizer.name(), "options": layer.binarizer.options()}
        for name, layer in model.named_modules()
        if isinstance(layer, BINARY_LAYERS)
    }


def differences(mine: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> str:
    """The first layer that is not binarized in the same way, in words; nothing if all are."""
    for name in [*theirs, *mine]:
        a, b = (_said(layers.get(name)) for layers in (theirs, mine))
        if a != b:
            return f"{name} is {a} in the file and {b} in this network"
    return ""


def _said(layer: dict[str, Any] | None) -> str:
    return "real" if layer is None else f"binary by {layer['method']}"


def _add(model: nn.Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> None:
    layers = described(model)
    metadata[NOTE] = json.dumps(layers, default=str)
    if getattr(model, "marks_its_state", False):
        state[prefix + KEY] = torch.tensor(len(layers))


def _check(
    model: nn.Module,
    state: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    problems: list[str],
) -> None:
    state.pop(prefix + KEY, None)
    if NOTE in metadata and (odd := differences(described(model), json.loads(metadata[NOTE]))):
        problems.append(f"{odd}: call latentbit.binarize_ as it was called for the network that was saved")
