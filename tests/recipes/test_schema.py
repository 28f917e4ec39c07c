"""schema: annotations as the only source of types, ranges, choices."""

import math
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest

from latentbit.recipes import schema
from latentbit.recipes.schema import Range


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
        (1, Literal["a", "b"], True),
        (0, bool, True),
        (False, bool, False),
        ({"x": 1}, Mapping[str, Any], False),
        ([], Mapping[str, Any], True),
    ],
)
def test_problem_with(value: Any, hint: Any, wrong: bool) -> None:
    assert bool(schema.problem_with(value, hint)) is wrong


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
    found = schema.parse(text, hint)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [True, 0, -3, 1e-30, 0.1, 1e300, "", 'a"b\\c\n\x7fé', {"a b": 1, "c": {"d": [1, 2.5, "x"]}}, [], {}],
)
def test_toml_value_reads_back_equal(value: Any) -> None:
    found = tomllib.loads(f"v = {schema.toml_value(value)}")["v"]
    assert found == value and type(found) is type(value)


def test_line_of() -> None:
    text = "name = 'x'\n[a]\nb = 1\nbc = 2\n[d]\nb = 3\n[d.e]\nf = 1\n"
    assert schema.line_of(text, "", "name") == 1
    assert schema.line_of(text, "", "a") == 2
    assert schema.line_of(text, "a", "bc") == 4
    assert schema.line_of(text, "d", "b") == 6
    assert schema.line_of(text, "d", "e") == 7
    assert schema.line_of(text, "d", "zz") == 0


def test_nearest_says_nothing_about_strangers() -> None:
    assert schema.nearest("epoch", ["epochs", "lr"]) == ", did you mean 'epochs'?"
    assert schema.nearest("xyzzy", ["epochs", "lr"]) == ""
