"""Ways to binarize, one file each. The folder is the registry: a file is a method.

    from latentbit.methods import IRNet
    binarize_(model, IRNet(t_min=0.1))

What methods are made of is in parts/.
"""

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any

from latentbit.errors import LatentbitError, nearest
from latentbit.fields import hints, problem_with
from latentbit.imports import find_import, is_import, without_folder
from latentbit.methods.parts.binarizer import BadOption, Binarizer


class UnknownMethod(LatentbitError):
    """No file of that name in methods/, and no Binarizer to import."""


def names() -> list[str]:
    """Every method that comes with the package."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.ispkg)


def manual(name: str) -> str:
    """What the author says about a method: formulas, paper, confidence, what is left out."""
    cls = find(name)
    return ((cls.__doc__ if is_import(name) else None) or sys.modules[cls.__module__].__doc__ or "").strip()


def find(name: str) -> type[Binarizer]:
    """The class of the method called `name`; `my_file.py:MyClass` or `my_module:MyClass` is imported."""
    if is_import(name):
        found = find_import(name)
        if not (isinstance(found, type) and issubclass(found, Binarizer)):
            raise UnknownMethod(f"{name} is not a method: it must be a subclass of latentbit.Binarizer")
        return found
    if name not in names():
        hint = nearest(name, names()) or "."
        raise UnknownMethod(f"no method {name!r}{hint} Methods: {', '.join(names())}")
    return _class_of(name)


def create(name: str, options: Mapping[str, Any] | None = None) -> Binarizer:
    """The method called `name` with these options, every problem with them told at once."""
    cls = find(name)
    problems = option_problems(cls, options or {})
    if problems:
        told = "; ".join(f"{key}: {what}" for key, what in problems.items())
        raise BadOption(f"method {without_folder(name)}, option {told}")
    return cls(**(options or {}))


def option_problems(cls: type[Binarizer], options: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with which option: a name that the method does not have, or a value it does not take."""
    valid = hints(cls)
    found = {}
    for key, value in options.items():
        if key not in valid:
            listed = f"its options: {', '.join(valid)}" if valid else "it has none"
            found[key] = f"method {cls.name()} has no such option{nearest(key, valid) or ';'} {listed}"
        elif what := problem_with(value, valid[key]):
            found[key] = what
    return found


def _class_of(file: str) -> type[Binarizer]:
    module = importlib.import_module(f"{__name__}.{file}")
    mine = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Binarizer) and value.__module__ == module.__name__
    ]
    if len(mine) != 1:
        raise TypeError(f"methods/{file}.py must define exactly one Binarizer, it defines {len(mine)}")
    return mine[0]


def __getattr__(name: str) -> Any:
    """`latentbit.methods.IRNet`: the class of a method, without the name of its file."""
    if name[:1].isupper():
        for file in names():
            cls = _class_of(file)
            if cls.__name__ == name:
                return cls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *(_class_of(file).__name__ for file in names())])
