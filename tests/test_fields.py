"""fields: annotations and the strings under them as the only source of types, ranges, choices and meaning."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from latentbit import fields
from latentbit.fields import OneOf, Range


@pytest.mark.parametrize(
    ("value", "hint", "wrong"),
    [
        (3, int, False),
        (True, int, True),
        (3.0, int, True),
        (3, float, False),
        (True, float, True),
        (math.nan, float, True),
        (math.inf, Annotated[float, Range(0)], True),
        (0, Annotated[int, Range(1)], True),
        (1, Annotated[int, Range(1)], False),
        (1.5, Annotated[float, Range(0, 1)], True),
        ("a", Literal["a", "b"], False),
        ("c", Literal["a", "b"], True),
        ("m:f", Literal["a", "b"], True),
        ("a", Annotated[str, OneOf(("a", "b"))], False),
        ("c", Annotated[str, OneOf(("a", "b"))], True),
        ("m:f", Annotated[str, OneOf(("a", "b"))], False),
        (2, Literal[2, 4], False),
        (3, Literal[2, 4], True),
        ("2", Literal[2, 4], True),
        ([1], tuple[int, ...], True),
        (1, Literal["a", "b"], True),
        (0, bool, True),
        (False, bool, False),
        ({"x": 1}, Mapping[str, Any], False),
        ([], Mapping[str, Any], True),
    ],
)
def test_problem_with(value: Any, hint: Any, wrong: bool) -> None:
    assert bool(fields.problem_with(value, hint)) is wrong


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("3", int, 3),
        ("1e-3", float, 1e-3),
        ("1", float, 1.0),
        ("true", bool, True),
        ("abc", str, "abc"),
        ("'a b'", str, "a b"),
        ("7", str, "7"),
        ("x", int, "x"),
        ("{a = 1}", Mapping[str, Any], {"a": 1}),
        ("[1, 2]", Any, [1, 2]),
    ],
)
def test_parse(text: str, hint: Any, value: Any) -> None:
    found = fields.parse(text, hint)
    assert found == value and type(found) is type(value)


def test_problems_are_told_in_words() -> None:
    assert fields.problem_with(3, Literal[2, 4]) == "3 is not one of 2, 4"
    assert fields.problem_with("on", bool) == "'on' is not true or false"
    assert fields.problem_with(1.0, Annotated[float, Range(high=0)]) == (
        "1.0 is out of range, it must be at most 0"
    )
    assert fields.problem_with([1], tuple[int, ...]) == "[1] is not tuple[int, ...]"


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (float, "a number"),
        (Annotated[int, Range(1)], "an integer, at least 1"),
        (Annotated[float, Range(0, 0.5)], "a number, between 0 and 0.5"),
        (Literal[2, 4], "one of 2, 4"),
        (Annotated[str, OneOf(("a", "b"))], "one of a, b, or module:object of your own"),
    ],
)
def test_words(hint: Any, words: str) -> None:
    assert fields.words(hint) == words


@dataclass
class Base:
    first: int = 1
    """What first is."""


@dataclass
class Derived(Base):
    """Not the text of a field."""

    second: float = 2.0
    """What second is,
    in two lines.
    """
    third: float = 3.0


def test_docs_are_the_strings_under_the_fields_inherited_ones_too() -> None:
    found = {"first": "What first is.", "second": "What second is,\nin two lines.", "third": ""}
    assert fields.docs(Derived) == found
