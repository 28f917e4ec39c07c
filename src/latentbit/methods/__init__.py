"""Published ways to binarize, one file each. The folder is the registry: a file is a method.

What methods are made of is in parts/.
"""

import difflib
import importlib
import pkgutil
import sys

from latentbit.errors import LatentbitError
from latentbit.methods.parts.binarizer import Binarizer


class UnknownMethod(LatentbitError):
    """No file of that name in methods/."""


def names() -> list[str]:
    """Every method there is."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.ispkg)


def manual(name: str) -> str:
    """What the file of a method says about it: formulas, paper, confidence, what is left out."""
    return (sys.modules[find(name).__module__].__doc__ or "").strip()


def find(name: str) -> type[Binarizer]:
    """The Binarizer of the method called `name`."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise UnknownMethod(f"no method {name!r}{hint} Methods: {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    mine = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Binarizer) and value.__module__ == module.__name__
    ]
    if len(mine) != 1:
        raise TypeError(f"methods/{name}.py must define exactly one Binarizer, it defines {len(mine)}")
    return mine[0]
