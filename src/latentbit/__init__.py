"""latentbit: binary neural networks that put their latent weights to work.

Every public name is found here and imported on first use, so that `import latentbit` and the packed
engine start without torch.
"""

import importlib
import importlib.util
import pkgutil
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from latentbit.binarize import Swapped, binarize_, constant_inputs, first_and_last
    from latentbit.binarize.marking import mark_
    from latentbit.checkpoints.saving import load, save
    from latentbit.data.own import OwnData
    from latentbit.fields import Range
    from latentbit.layers import BinaryConv1d, BinaryConv2d, BinaryLinear
    from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed
    from latentbit.methods.parts.loops import progress, step_done
    from latentbit.models.summary import summary
    from latentbit.objective import Objective
    from latentbit.packing import pack
    from latentbit.training.optimizers import optimizer_for
    from latentbit.views import TwoView, latent_view, stale_view
    from latentbit.views.recalibrate import recalibrate

_HOME = {
    "Binarizer": "methods.parts.binarizer",
    "BinaryConv1d": "layers",
    "BinaryConv2d": "layers",
    "BinaryLayer": "methods.parts.binarizer",
    "BinaryLinear": "layers",
    "Deployed": "methods.parts.binarizer",
    "Objective": "objective",
    "OwnData": "data.own",
    "Range": "fields",
    "Swapped": "binarize",
    "TwoView": "views",
    "binarize_": "binarize",
    "constant_inputs": "binarize",
    "first_and_last": "binarize",
    "latent_view": "views",
    "load": "checkpoints.saving",
    "mark_": "binarize.marking",
    "optimizer_for": "training.optimizers",
    "pack": "packing",
    "progress": "methods.parts.loops",
    "recalibrate": "views",
    "save": "checkpoints.saving",
    "stale_view": "views",
    "step_done": "methods.parts.loops",
    "summary": "models.summary",
}

__all__ = [
    "Binarizer",
    "BinaryConv1d",
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Deployed",
    "Objective",
    "OwnData",
    "Range",
    "Swapped",
    "TwoView",
    "binarize_",
    "constant_inputs",
    "first_and_last",
    "latent_view",
    "load",
    "mark_",
    "optimizer_for",
    "pack",
    "progress",
    "recalibrate",
    "save",
    "stale_view",
    "step_done",
    "summary",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name, name)
    if name.startswith("_") or importlib.util.find_spec(f"latentbit.{home}") is None:
        raise AttributeError(f"module 'latentbit' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"latentbit.{home}")
    except ModuleNotFoundError as error:
        from latentbit.errors import not_installed

        raise not_installed(error, f"latentbit.{name}") from None
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    modules = (found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))
    return sorted([*globals(), *_HOME, *modules])
