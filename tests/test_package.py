"""The package as a whole: what importing it costs, and that every module has its test file."""

import subprocess
import sys
from pathlib import Path

import pytest

import latentbit

SOURCE = Path(latentbit.__path__[0])
TESTS = Path(__file__).parent


def test_import_does_not_bring_torch() -> None:
    code = "import sys, latentbit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_public_name_resolves() -> None:
    for name in latentbit.__all__:
        assert getattr(latentbit, name) is not None
    assert set(latentbit.__all__) == set(latentbit._HOME) <= set(dir(latentbit))


def test_modules_are_found_as_attributes_and_misspellings_are_not() -> None:
    assert latentbit.engine.load is not None
    assert "engine" in dir(latentbit)
    with pytest.raises(AttributeError, match="has no attribute 'engin'"):
        latentbit.engin  # noqa: B018


def test_every_module_has_its_test_file() -> None:
    source = Path(__file__).parents[1] / "src" / "latentbit"
    modules = {p.relative_to(source) for p in source.rglob("*.py") if not p.name.startswith("__")}
    expected = {p.with_name(f"test_{p.name}") for p in modules}
    present = {p.relative_to(TESTS) for p in TESTS.rglob("test_*.py")}
    assert expected - present == set()
