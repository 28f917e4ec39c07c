"""The [first] table of a recipe: a stage that is trained before, by the same recipe but for the keys that stand here.

    [first]
    real_weights = true       # binary activations first, then weights as well
    weight_decay = 1e-5

Keys are those of the other sections, without their names; overrides say `first.epochs=64`. The method is the same in
both stages, because the second takes all that the first has learned.
"""

from collections.abc import Sequence
from typing import Any

from latentbit.errors import nearest
from latentbit.fields import parse
from latentbit.imports import is_import
from latentbit.recipes.schema import Problem, Sections


def faults(table: Any, text: str, sections: Sections) -> list[Problem]:
    """What is wrong with the table, each with its line."""
    if not isinstance(table, dict):
        return [Problem.at(text, "", "first", "is a section, write it as a table")]
    found = {key: _fault(key, value, sections) for key, value in table.items()}
    return [Problem.at(text, "first", key, what) for key, what in found.items() if what]


def override(
    tables: dict[str, Any], overrides: Sequence[str], sections: Sections
) -> tuple[list[str], list[str]]:
    """Put `first.key=value` into the table; gives all other overrides, and what is wrong."""
    others, problems = [], []
    for text in overrides:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key.startswith("first."):
            others.append(text)
            continue
        key = key.removeprefix("first.")
        parsed = parse(value, sections.hints.get(sections.home.get(key, ""), {}).get(key, Any))
        what = _fault(key, parsed, sections) if equals else "write it as first.key=value"
        if what:
            problems.append(f"override {text!r}: {what}")
        elif isinstance(tables.setdefault("first", {}), dict):
            tables["first"][key] = parsed
    return others, problems


def _fault(key: str, value: Any, sections: Sections) -> str:
    if key not in sections.home:
        return f"unknown key{nearest(key, sections.home)}"
    if key in ("dataset", "network", "latent") and isinstance(value, str) and is_import(value):
        return "names code: both stages use the code that the other sections name"
    return sections.fault(sections.home[key], key, value)
