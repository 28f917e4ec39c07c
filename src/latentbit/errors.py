"""Errors that a user can fix: each message says what is wrong and what to do about it."""

import difflib
from collections.abc import Iterable


class LatentbitError(Exception):
    """Base of the errors that the command line prints as one line, without a traceback."""


class LatentbitWarning(UserWarning):
    """Something that a user will want to know: it runs, and probably not as meant. The command line prints one line."""


def nearest(word: str, words: Iterable[str]) -> str:
    """', did you mean ...?' when some valid word is close, else the empty string."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f", did you mean {found[0]!r}?" if found else ""
