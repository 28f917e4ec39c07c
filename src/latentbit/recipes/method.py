"""The [method] table of a recipe: the name of a method, and beside it the options that this method has.

    [method]
    name = "irnet"
    t_min = 0.1

Which keys are valid depends on the name, so this table is read here and not by the schema of the other sections. A
name with a colon is a class of the user's own. Reading a recipe does not import it: its options are checked when the
network is built. Recipes written for 0.1 say `[model] method = "irnet"`, which means the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from latentbit.errors import nearest
from latentbit.fields import hints, parse, problem_with
from latentbit.imports import is_import
from latentbit.recipes.schema import Problem

DEFAULT = "sign"
NAME_KEYS = ("method", "method.name", "model.method")
"""What an override may call the name."""

Table = dict[str, Any]


@dataclass(frozen=True)
class Method:
    name: str = DEFAULT
    """How weights and activations become bits: `latentbit methods list`, or my_package.my_module:MyClass."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of that method; `latentbit methods show NAME` explains them."""


def take(tables: Table, inherited: str, text: str) -> tuple[Table, list[Problem]]:
    """Take the table out of those of a file, and say what is wrong with it.

    `inherited` names the method of the file that this one extends.
    """
    table, model, place = tables.pop("method", {}), tables.get("model"), ("method", "name")
    if not isinstance(table, dict):
        return {}, [Problem.at(text, "", "method", "is a section, write it as a table")]
    if isinstance(model, dict) and "method" in model:
        place, old = ("model", "method"), model.pop("method")
        if "name" in table:
            return table, [Problem.at(text, *place, "[method] has a name already, remove this one")]
        table = {"name": old, **table}
    name = table.get("name", inherited)
    if what := _name_fault(name):
        return table, [Problem.at(text, *place, what)]
    faults = _option_faults(name, {key: value for key, value in table.items() if key != "name"})
    return table, [Problem.at(text, "method", key, what) for key, what in faults.items()]


def merge(above: Table, own: Table) -> Table:
    """A file's table over that of the file it extends; the options of another method do not carry over."""
    return {**above, **own} if own.get("name", above.get("name")) == above.get("name") else own


def override(table: Table, overrides: Sequence[str]) -> tuple[Table, list[str], list[str]]:
    """The table with the overrides that are about it, all other overrides, and what is wrong.

    The name counts first, wherever it stands.
    """
    parts = {text: [part.strip() for part in text.partition("=")] for text in overrides}
    named = [text for text, (key, equals, _) in parts.items() if equals and key in NAME_KEYS]
    options = [text for text, (key, _, _) in parts.items() if key.startswith("method.") and text not in named]
    others = [text for text in overrides if text not in named and text not in options]
    problems = []
    for text in named:
        table = merge(table, {"name": parse(parts[text][2], str)})
        if what := _name_fault(table["name"]):
            problems.append(f"override {text!r}: {what}")
    name, table = table.get("name", DEFAULT), dict(table)
    if _name_fault(name):
        return table, others, problems
    valid = _hints(name)
    for text in options:
        key, equals, value = parts[text]
        key = key.removeprefix("method.")
        table[key] = parse(value, valid.get(key, Any))
        if not equals:
            problems.append(f"override {text!r}: write it as key=value")
        elif what := _option_faults(name, {key: table[key]}).get(key, ""):
            problems.append(f"override {text!r}: {what}")
    return table, others, problems


def build(table: Table) -> Method:
    """The method of a table without fault; every option of ours is written out, so that a run tells its numbers."""
    options = dict(table)
    name = options.pop("name", DEFAULT)
    if is_import(name):
        return Method(name, options)
    from latentbit import methods

    return Method(name, methods.create(name, options).options())


def option_names(table: Table) -> list[str]:
    """Options of the method, as overrides call them."""
    name = table.get("name", DEFAULT)
    return [] if _name_fault(name) else [f"method.{key}" for key in _hints(name)]


def _hints(name: str) -> dict[str, Any]:
    """The options of one of our methods; none are known of a class that is not imported yet."""
    from latentbit import methods

    return {} if is_import(name) else hints(methods.find(name))


def _name_fault(name: Any) -> str:
    if what := problem_with(name, str):
        return what
    from latentbit import methods

    if is_import(name) or name in methods.names():
        return ""
    return f"no method {name!r}{nearest(name, methods.names())} ({', '.join(methods.names())})"


def _option_faults(name: str, options: Table) -> dict[str, str]:
    from latentbit import methods

    return {} if is_import(name) else methods.option_problems(methods.find(name), options)
