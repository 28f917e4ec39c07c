"""Code of the user's own that a recipe names: `my_package.my_module:my_object` or `my_file.py:my_object`.

This is the only place that imports it. What a user types in a command or writes in Python is imported. What was read
from a file, the recipe of a run for example, may come from someone else: it is imported only inside `trusting()`, which
is what `--trust-code` does. Reading a recipe never imports anything.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from latentbit.errors import LatentbitError, nearest

_trusting: ContextVar[bool] = ContextVar("trusting", default=False)
_loaded: dict[tuple[Path, int, int], tuple[ModuleType, tuple[Path, ...]]] = {}
"""Files by path, time of change and size: the module, and the files beside it that it imported."""


class CannotImport(LatentbitError):
    """The module, the file or the object in it is not there."""


class CodeNotTrusted(LatentbitError):
    """A file names code, and nobody said that it may run."""


class Unvouched(str):
    """The name of code as a file has it, with the file and all the code that this file names."""

    source: str
    named: tuple[str, ...]


@contextlib.contextmanager
def trusting(trusted: bool = True) -> Iterator[None]:
    """Inside, code that files name is imported as well."""
    before = _trusting.set(trusted)
    try:
        yield
    finally:
        _trusting.reset(before)


def is_trusting() -> bool:
    """Whether this is inside of `trusting()`."""
    return _trusting.get()


def is_import(name: str) -> bool:
    """Whether a name is that of an object to import, and not one of ours."""
    return ":" in name


def in_file(name: str) -> bool:
    """Whether it is an object of a file, and not of a module that Python finds."""
    return is_import(name) and name.rpartition(":")[0].endswith(".py")


def without_folder(name: str) -> str:
    """`my_file.py:my_object` whatever folder the file is in; other names as they are."""
    if not in_file(name):
        return name
    file, _, wanted = name.rpartition(":")
    return f"{Path(file).name}:{wanted}"


def read_from(source: Path, names: dict[str, str]) -> dict[str, str]:
    """Names of code as a file has them under its keys: their paths are relative to it, and nobody vouches for them."""
    named = tuple(f"{key} = {name}" for key, name in names.items())
    found: dict[str, str] = {}
    for key, name in names.items():
        if in_file(name):
            file, _, wanted = name.rpartition(":")
            name = f"{(source.parent / Path(file).expanduser()).absolute()}:{wanted}"
        marked = Unvouched(name)
        marked.source, marked.named = str(source), named
        found[key] = marked
    return found


def require_trust(name: str) -> None:
    """CodeNotTrusted if the name was read from a file and nobody said that it may run. Runs nothing."""
    if isinstance(name, Unvouched) and not is_trusting():
        listed = "; ".join(name.named)
        raise CodeNotTrusted(
            f"{name.source} names code of its own ({listed}), which would run from {_place(name)}. Nothing of it "
            "was run. Read it; if you trust it, add --trust-code (in Python: with latentbit.imports.trusting())"
        )


def find_import(name: str) -> Any:
    """The object called `module:object` or `file.py:object`. Modules in the current folder are found too."""
    where, _, wanted = name.rpartition(":")
    if not where or (where.startswith(".") and not in_file(name)) or not wanted.isidentifier():
        raise CannotImport(
            f"{str(name)!r} does not name an object to import: write my_file.py:my_object or "
            "my_package.my_module:my_object"
        )
    require_trust(name)
    module = _file(name, Path(where).expanduser()) if in_file(name) else _module(name, where)
    if not hasattr(module, wanted):
        public = [word for word in vars(module) if not word.startswith("_")]
        what = "file" if in_file(name) else "module"
        raise CannotImport(f"{name}: {what} {where!r} has no {wanted!r}{nearest(wanted, public)}")
    return getattr(module, wanted)


def files_of(name: str) -> tuple[Path, ...]:
    """The file of a `file.py:object`, then the files of its folder that it imported when it was loaded."""
    path = Path(name.rpartition(":")[0]).expanduser().resolve()
    return (path, *_loaded[_key(path)][1]) if _key(path) in _loaded else (path,)


def digest(path: Path) -> str:
    """Of the text of a file."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _place(name: str) -> str:
    """Where code would come from, found without running any of it."""
    where = name.rpartition(":")[0]
    if in_file(name):
        return str(Path(where).resolve())
    spec = PathFinder.find_spec(where.split(".")[0], [*sys.path, os.getcwd()])
    return str(spec.origin) if spec and spec.origin else f"a module {where!r}, which is not here"


def _module(name: str, where: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that it hides no installed module
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise  # a module that the user's code needs: the traceback says where
        hint = f"; for a file write {where}.py:..." if Path(f"{where}.py").is_file() else ""
        raise CannotImport(
            f"{name}: there is no module {error.name!r}; install the package that has it, "
            f"or run this in the folder of its file{hint}"
        ) from None


def _key(path: Path) -> tuple[Path, int, int]:
    try:
        facts = path.stat()
    except OSError:
        return path, 0, 0
    return path, facts.st_mtime_ns, facts.st_size


def _file(name: str, path: Path) -> ModuleType:
    """The module of a file: run once, again only if the file has changed."""
    path = path.resolve()
    if not path.is_file():
        beside = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise CannotImport(f"{name}: there is no file {path}{nearest(path.name, beside)}")
    if _key(path) not in _loaded:
        # Called by its file, so that messages say what a recipe says; another file of this name gets a number.
        called, n = path.name, 1
        while called in sys.modules:
            called, n = f"{path.name}#{n + 1}", n + 1
        spec = importlib.util.spec_from_file_location(called, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[called] = module
        try:
            with _folder_on_path(path.parent) as imported:
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[called]
            raise
        _loaded[_key(path)] = module, tuple(imported)
    return _loaded[_key(path)][0]


@contextlib.contextmanager
def _folder_on_path(folder: Path) -> Iterator[Sequence[Path]]:
    """Modules of the folder can be imported inside, as by a script there; gives the files of those that were.

    Afterwards Python forgets them: the code of another run may have modules of the same names.
    """
    before, wrote = set(sys.modules), sys.dont_write_bytecode
    imported: list[Path] = []
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # a run is only read
    try:
        yield imported
    finally:
        sys.dont_write_bytecode = wrote
        sys.path.remove(str(folder))
        for called in set(sys.modules) - before:
            origin = getattr(sys.modules[called], "__file__", None)
            if origin and Path(origin).resolve().is_relative_to(folder):
                imported.append(Path(origin).resolve())
                del sys.modules[called]
