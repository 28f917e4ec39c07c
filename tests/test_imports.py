"""imports: objects of the user's own, found by module:object."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from latentbit.imports import (
    CannotImport,
    CodeNotTrusted,
    files_of,
    find_import,
    is_import,
    is_trusting,
    read_from,
    trusting,
    without_folder,
)


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
    assert "write my_file.py:my_object or my_package.my_module:my_object" in refused("lb_third:")
    assert "write my_file.py:my_object or my_package.my_module:my_object" in refused("..lb_third:MyMethod")
    with pytest.raises(
        ModuleNotFoundError, match="lb_needed"
    ):  # with its traceback: the fault is in that file
        find_import("lb_other:f")


def test_an_object_of_a_file(here: Path) -> None:
    (here / "lb_file.py").write_text("from lb_beside import answer\n")
    (here / "lb_beside.py").write_text("answer = 44\n")
    assert find_import("lb_file.py:answer") == find_import(f"{here}/lb_file.py:answer") == 44
    assert files_of("lb_file.py:answer") == (here / "lb_file.py", here / "lb_beside.py")
    assert "lb_beside" not in sys.modules and str(here) not in sys.path[:1]
    assert not (here / "__pycache__").exists()
    (here / "lb_file.py").write_text("answer = 'after an edit'\n")
    assert find_import("lb_file.py:answer") == "after an edit"
    assert refused("lb_fil.py:answer").endswith(
        f"there is no file {here}/lb_fil.py, did you mean 'lb_file.py'?"
    )
    assert "file 'lb_file.py' has no 'anser', did you mean 'answer'?" in refused("lb_file.py:anser")
    assert without_folder("a/b.py:c") == "b.py:c" and without_folder("a.b:c") == "a.b:c"


def test_what_a_file_names_is_not_imported_unless_trusted(here: Path) -> None:
    (here / "lb_evil.py").write_text("open('it-ran', 'w')\nf = 1\n")
    names = read_from(here / "x" / "r.toml", {"model.network": "../lb_evil.py:f", "method.name": "lb_evil:f"})
    for name in map(pickle.loads, map(pickle.dumps, names.values())):  # as it goes to another process
        with pytest.raises(CodeNotTrusted) as caught:
            find_import(name)
        told = str(caught.value)
        assert (
            "model.network = ../lb_evil.py:f; method.name = lb_evil:f" in told
            and f"{here}/lb_evil.py" in told
        )
    assert not (here / "it-ran").exists()
    with trusting():
        assert find_import(names["model.network"]) == 1
    assert not is_trusting() and (here / "it-ran").exists()
