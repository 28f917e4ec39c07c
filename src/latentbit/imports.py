"""Code of the user's own that a recipe names: `my_package.my_module:my_object`.

This is the only place that imports it. A recipe is read without doing so: the recipe of a run may come from someone
else, and looking at it must not run code. What trains, evaluates or packs a network has to build it, and calls this.
"""

import importlib
import os
import sys
from typing import Any

from latentbit.errors import LatentbitError, nearest


class CannotImport(LatentbitError):
    """The module or the object in it is not there."""


def is_import(name: str) -> bool:
    """Whether a name is that of an object to import, and not one of ours."""
    return ":" in name


def find_import(name: str) -> Any:
    """The object called `module:object`. Modules in the current folder are found too, as `python -m` finds them."""
    module_name, _, object_name = name.partition(":")
    if not module_name or module_name.startswith(".") or not object_name.isidentifier():
        raise CannotImport(
            f"{name!r} does not name an object to import: write my_package.my_module:my_object"
        )
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that it hides no installed module
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # a module that the user's code needs: the traceback says where
        raise CannotImport(
            f"{name}: there is no module {error.name!r}; install the package that has it, "
            "or run this in the folder of its file"
        ) from None
    if not hasattr(module, object_name):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise CannotImport(
            f"{name}: module {module_name!r} has no {object_name!r}{nearest(object_name, public)}"
        )
    return getattr(module, object_name)
