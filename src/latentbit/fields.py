"""Fields of a dataclass as something a user sets: type, bounds, choices and meaning come from the source.

    t_min: Annotated[float, Range(1e-6)] = 1e-3
    '''What it means.'''

Sections of a recipe and options of a method are both written so.
"""

import ast
import dataclasses
import inspect
import math
import textwrap
import tomllib
import typing
from collections.abc import Mapping
from typing import Any, Literal

from latentbit.errors import nearest
from latentbit.imports import is_import

LARGEST = 2**31 - 1
"""Of counts that have no other bound. It goes without saying, unless somebody passes it."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Closed bounds of a number, used as `Annotated[int, Range(1)]`."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low, high = (f"{n}" if isinstance(n, int) else f"{n:g}" for n in (self.low, self.high))
        if self.high in (math.inf, LARGEST):
            return f"at least {low}"
        if self.low == -math.inf:
            return f"at most {high}"
        return f"between {low} and {high}"


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Words to choose from, or `my_module:my_object`; used as `Annotated[str, OneOf(("none", "all"))]`."""

    words: tuple[str, ...]


_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string", dict: "a table"}


def hints(cls: type) -> dict[str, Any]:
    """The annotation of each field of a dataclass, with `Annotated` kept."""
    resolved = typing.get_type_hints(cls, include_extras=True)
    return {field.name: resolved[field.name] for field in dataclasses.fields(cls)}


def docs(cls: type) -> dict[str, str]:
    """The string under each field of a dataclass, its own and inherited; empty where the source is not at hand."""
    found: dict[str, str] = {}
    for part in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(part):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        except (OSError, TypeError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for node, below in zip(tree.body, tree.body[1:], strict=False):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                found[node.target.id] = inspect.cleandoc(str(below.value.value))
    return {field.name: found.get(field.name, "") for field in dataclasses.fields(cls)}


def _parts(hint: Any) -> tuple[type, Range | None, tuple[Any, ...]]:
    """A hint as (python type, range, choices)."""
    if typing.get_origin(hint) is typing.Annotated:
        kind, *extras = typing.get_args(hint)
        bounds = next((e for e in extras if isinstance(e, Range)), None)
        return kind, bounds, next((e.words for e in extras if isinstance(e, OneOf)), ())
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        return type(choices[0]), None, choices
    origin = typing.get_origin(hint)
    kind = dict if origin is Mapping else origin if isinstance(origin, type) else hint
    return kind, None, ()


def words(hint: Any) -> str:
    """What a hint allows, for people: 'a number, at least 0'."""
    kind, bounds, choices = _parts(hint)
    if choices:
        own = ", or module:object of your own" if typing.get_origin(hint) is typing.Annotated else ""
        return f"one of {', '.join(map(str, choices))}{own}"
    return _NAMES.get(kind, str(hint)) + (f", {bounds}" if bounds else "")


def problem_with(value: Any, hint: Any) -> str:
    """What is wrong with `value` under `hint`, or the empty string."""
    kind, bounds, choices = _parts(hint)
    shown = _shown(value)
    right = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not right or (isinstance(value, bool) and kind is not bool):
        return f"{shown} is not {_NAMES.get(kind, str(hint))}"
    own_allowed = typing.get_origin(hint) is typing.Annotated
    if choices and value not in choices and not (own_allowed and is_import(value)):
        listed = [str(choice) for choice in choices]
        return f"{shown} is not one of {', '.join(listed)}{nearest(str(value), listed)}"
    if kind is float and not math.isfinite(value):
        return f"{shown} is not finite"
    if bounds and not bounds.low <= value <= bounds.high:
        far = value > bounds.high == LARGEST
        return f"{shown} is out of range, it must be {f'at most {LARGEST}' if far else bounds}"
    return ""


def _shown(value: Any) -> str:
    """A value in a message: not more of it than fits a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python prints no integer of more than 4,300 digits
        return "a value too long to print"
    return text if len(text) <= 80 else f"{text[:77]}..."


def settle(value: Any, hint: Any) -> Any:
    """A sound value in the type of its field: `lr = 1` is 1.0."""
    return float(value) if _parts(hint)[0] is float else value


def parse(text: str, hint: Any) -> Any:
    """The value of a `key=value` override; text that does not fit the hint comes back unchanged."""
    kind, _, _ = _parts(hint)
    if kind is str:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    if kind is float:
        try:
            return float(text)
        except ValueError:
            return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, or more digits or brackets than Python reads
        return text
