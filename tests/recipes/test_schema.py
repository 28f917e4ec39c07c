"""schema: values as TOML writes them, and where a key stands."""

import tomllib
from typing import Any

import pytest

from latentbit.recipes import schema


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
