"""Errors that a user can fix: each message says what is wrong and what to do about it."""

import difflib
from collections.abc import Iterable


class LatentbitError(Exception):
    """Base of the errors that the command line prints as one line, without a traceback."""


class LatentbitWarning(UserWarning):
    """Something that a user will want to know: it runs, and probably not as meant. The command line prints one line."""


class NotInstalled(LatentbitError, ModuleNotFoundError):
    """A package that only an extra of latentbit brings is missing."""


# Packages that a plain `pip install latentbit` leaves out, by the name they are imported under, and who brings them.
EXTRAS = dict.fromkeys(("torch", "safetensors", "matplotlib", "filelock", "jinja2", "sklearn"), "train")


def not_installed(error: ModuleNotFoundError, wanted: str) -> ModuleNotFoundError:
    """`error` with the line to type, where an extra of latentbit brings the missing package; else `error` itself."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    line = f"pip install 'latentbit[{EXTRAS[package]}]'"
    return NotInstalled(f"{wanted} needs {package}, which is not installed. Type:  {line}", name=error.name)


def nearest(word: str, words: Iterable[str]) -> str:
    """', did you mean ...?' when some valid word is close, else the empty string."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f", did you mean {found[0]!r}?" if found else ""
