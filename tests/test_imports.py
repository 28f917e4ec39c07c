"""imports: objects of the user's own, found by module:object."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from latentbit.imports import CannotImport, find_import, is_import


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refused(name: str) -> str:
    with pytest.raises(CannotImport) as caught:
        find_import(name)
    return str(caught.value)


def test_a_module_of_the_current_folder_is_found(here: Path) -> None:
    (here / "lb_thing.py").write_text("answer = 42")
    (here / "lb_package").mkdir()
    (here / "lb_package" / "inner.py").write_text("answer = 43")
    assert find_import("lb_thing:answer") == 42
    assert find_import("lb_package.inner:answer") == 43


def test_the_current_folder_is_looked_at_last(here: Path) -> None:
    (here / "lb_name.py").write_text("answer = 1")
    find_import("lb_name:answer")
    assert sys.path[-1] == str(here)


def test_only_names_with_a_colon_are_imported() -> None:
    assert is_import("a.b:c") and not is_import("irnet")


def test_what_is_not_there_is_named(here: Path) -> None:
    (here / "lb_other.py").write_text("import lb_needed\n")
    (here / "lb_third.py").write_text("class MyMethod: pass\n")
    assert refused("lb_nothing.inner:f") == (
        "lb_nothing.inner:f: there is no module 'lb_nothing'; install the package that has it, "
        "or run this in the folder of its file"
    )
    assert refused("lb_third:MyMetod") == (
        "lb_third:MyMetod: module 'lb_third' has no 'MyMetod', did you mean 'MyMethod'?"
    )
    assert "write my_package.my_module:my_object" in refused("lb_third:")
    assert "write my_package.my_module:my_object" in refused("..lb_third:MyMethod")
    with pytest.raises(
        ModuleNotFoundError, match="lb_needed"
    ):  # with its traceback: the fault is in that file
        find_import("lb_other:f")
