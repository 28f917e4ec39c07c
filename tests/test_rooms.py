"""A room imports only from rooms to its left, in the order that CONTRIBUTING.md draws; files and engine know no torch.

The sources are read, not run: imports inside functions and under TYPE_CHECKING count as well.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "latentbit"

WITHOUT_TORCH = ("images", "zoo", "lbit", "engine", "export")

MODULES = {
    ".".join(("latentbit", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def order() -> list[str]:
    """The rooms from left to right, as CONTRIBUTING.md has them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text.partition("## Where things are")[2].partition("| ")[0]
    lines = [line for line in drawn.splitlines() if line.startswith("    ")]
    return re.findall(r"\w+", " ".join(lines))


def imports(path: Path, only_run: bool = False) -> Iterator[str]:
    """Names of modules that a file imports anywhere in it; `only_run` leaves out those under TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if only_run and id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}:{node.lineno}: write imports in full"
            yield node.module
            below = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in below if name in MODULES)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def packages(module: str) -> Iterator[str]:
    """The module and every package that is imported before it."""
    parts = module.split(".")
    yield from (".".join(parts[: i + 1]) for i in range(len(parts)))


def test_every_room_has_its_place() -> None:
    entries = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(order()) == sorted(entries - {"__init__", "__main__"})


def test_imports_point_left() -> None:
    place = {name: i for i, name in enumerate(order())}
    found = [
        f"{module} imports {target}"
        for module, path in MODULES.items()
        for target in imports(path)
        if room(module) in place and room(target) in place and place[room(target)] > place[room(module)]
    ]
    assert found == []


def test_lazy_and_typing_imports_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from latentbit.cli import app\n"
        "def f():\n    from latentbit import engine\n"
    )
    assert {"latentbit.cli", "latentbit.engine"} <= set(imports(path))
    assert "latentbit.cli" not in set(imports(path, only_run=True))


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_no_torch_however_far_one_follows(name: str) -> None:
    todo = [module for module in MODULES if room(module) == name]
    came_from = dict.fromkeys(todo, name)
    assert todo
    while todo:
        module = todo.pop()
        for target in imports(MODULES[module], only_run=True):
            assert target.split(".")[0] != "torch", f"{module} imports torch; {came_from[module]} needs it"
            for one in packages(target):
                if one in MODULES and one not in came_from:
                    came_from[one] = f"{came_from[module]} <- {module}"
                    todo.append(one)
