"""A packed network as what other people's systems run: one file here per target, found by its name.

    from latentbit import export, lbit
    report = export.export(lbit.read("model.lbit"), "c", Path("firmware"), input="u8")

What the targets share is in parts/. Nothing here imports torch.
"""

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

from latentbit.errors import nearest
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError, Target, refuse_unknown
from latentbit.lbit import Network

__all__ = ["ExportError", "Report", "Target", "export", "find", "names", "options"]


def names() -> list[str]:
    """Every target that comes with the package."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.ispkg)


def find(name: str) -> type[Target]:
    """The class of the target called `name`."""
    if name not in names():
        raise ExportError(f"no target {name!r}{nearest(name, names()) or '.'} Targets: {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    mine = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Target) and value.__module__ == module.__name__
    ]
    if len(mine) != 1:
        raise TypeError(f"export/{name}.py must define exactly one Target, it defines {len(mine)}")
    return mine[0]


def options(name: str) -> list[str]:
    """What can be chosen for a target: the names of its options."""
    parameters = inspect.signature(find(name).write).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def export(network: Network, target: str, out: Path, **chosen: Any) -> Report:
    """Write the network for a target to `out`. ExportError names the layer, the op or the option that is at fault."""
    cls = find(target)
    for option in chosen:
        if option not in options(target):
            takers = [other for other in names() if option in options(other)]
            taken = f"it belongs to --to {' and '.join(takers)}" if takers else "no target has it"
            raise ExportError(f"--to {target} has no option --{option}; {taken}")
    refuse_unknown(network, cls, [find(other) for other in names()])
    return cls(network).write(out, **chosen)
