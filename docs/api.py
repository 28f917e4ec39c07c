"""Writes docs/api.md: every public name with its signature and docstring. A test keeps it current.

python docs/api.py
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import latentbit
from latentbit import engine, lbit

PAGE = Path(__file__).with_name("api.md")
INTRODUCTION = """# Names in Python

Made by `python docs/api.py` from the docstrings. `latentbit` imports a name when it is first used: what runs packed
networks needs no PyTorch. [model.md](model.md) and [own_loop.md](own_loop.md) show them at work,
[extending.md](extending.md) what you can add.
"""
PARTS = {
    "latentbit": [getattr(latentbit, name) for name in latentbit.__all__],
    "latentbit.engine": [engine.load, engine.Engine],
    "latentbit.lbit": [lbit.read, lbit.write, lbit.Network, lbit.Layer],
}


def page() -> str:
    """All of docs/api.md."""
    lines = [INTRODUCTION]
    for module, names in PARTS.items():
        lines.append(f"## {module}\n")
        for item in names:
            lines += entry(item)
    return "\n".join(lines).rstrip() + "\n"


def entry(item: object) -> Iterator[str]:
    """A heading with the signature, the docstring as it is written, then the public methods."""
    yield f"### {item.__name__}\n"
    yield code(item)
    for name, method in vars(item).items() if inspect.isclass(item) else ():
        if inspect.isfunction(method) and method.__doc__ and (not name.startswith("_") or name == "__call__"):
            yield f"#### {item.__name__}.{name}\n"
            yield code(method)


def code(item: object) -> str:
    """Signature and docstring as one block: docstrings line their arguments up by spaces."""
    text = inspect.getdoc(item) or ""
    return f"```\n{item.__name__}{signature(item)}\n\n{text}\n```\n"


def signature(item: object) -> str:
    """As it is written, one argument a line where it is long."""
    try:
        found = inspect.signature(item)
    except (TypeError, ValueError):
        return ""
    arguments = [short(str(a)) for a in found.parameters.values() if a.name != "self"]
    line = f"({', '.join(arguments)})"
    return line if len(line) <= 90 else "(\n    " + ",\n    ".join(arguments) + ",\n)"


def short(argument: str) -> str:
    """Types without the modules they are from, functions by their names."""
    argument = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", argument)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(\w+)", r"\1", argument)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(page().splitlines())} lines")
