"""save and load: a binary network in one safetensors file, which knows what is binary in it.

    latentbit.save(model, "net.safetensors")
    model = latentbit.load("net.safetensors", make_net())      # the real network, or one that is binarized already

The file has W, the buffers, and the names, methods and options of the binary layers. No pickle, no code.
"""

from pathlib import Path
from typing import TypeVar

from torch import nn

from latentbit import methods
from latentbit.binarize import binarize_
from latentbit.binarize.feeding import put_back_, put_in
from latentbit.binarize.marking import described, differences
from latentbit.checkpoints import checkpoint
from latentbit.errors import LatentbitError
from latentbit.imports import is_import
from latentbit.objective import Objective
from latentbit.views import TwoView

Model = TypeVar("Model", bound=nn.Module)


class CannotLoad(LatentbitError):
    """The file does not fit the network, or does not say what is binary in it."""


def save(model: nn.Module, path: Path | str) -> None:
    """Write the binary network of `model` (which may be a TwoView or an Objective) to a safetensors file."""
    if isinstance(model, Objective):
        model = model.model
    elif isinstance(model, TwoView):
        model = model.binary
    layers = described(model)
    if not layers:
        raise CannotLoad(
            f"{type(model).__name__} has no binary layer: call latentbit.binarize_ first, or save it with torch"
        )
    checkpoint.write_model(Path(path), model, {"layers": layers, "activations": put_in(model)})


def load(path: Path | str, model: Model) -> Model:
    """Read what `save` wrote into `model`, which is binarized in the same way first if it is a real network."""
    facts = checkpoint.read_facts(Path(path))
    layers = facts.get("layers")
    if not layers:
        raise CannotLoad(f"{path} was not written by latentbit.save: it does not say which layers are binary")
    if not described(model):
        for name, layer in layers.items():
            if is_import(layer["method"]):
                raise CannotLoad(
                    f"{path}: layer {name} is binary by {layer['method']}, which is code. If you trust it, binarize "
                    "the model with it, then load"
                )
        chosen = {name: methods.create(layer["method"], layer["options"]) for name, layer in layers.items()}
        binarize_(model, chosen, keep=[], only=list(chosen))
        put_back_(model, facts.get("activations", {}))
    if odd := differences(described(model), layers):
        raise CannotLoad(f"{path} is of another network: {odd}")
    checkpoint.read_model(Path(path), model)
    return model
