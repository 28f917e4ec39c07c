"""Where data lives on disk, and how a file gets there: whole under its name, or not at all."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from latentbit.atomic import WriteError
from latentbit.data.dataset import DataError


def cache() -> Path:
    """The folder of downloaded data: LATENTBIT_CACHE, else ~/.cache/latentbit."""
    chosen = os.environ.get("LATENTBIT_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "latentbit"


@contextlib.contextmanager
def explain_disk(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into an error that says where and what to do."""
    try:
        yield
    except WriteError as error:
        raise DataError(
            f"{error.what}. Free some space or set LATENTBIT_CACHE to another folder, then run the command again"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise DataError(
            f"cannot write to {folder}: {error.strerror}. "
            "Free some space or set LATENTBIT_CACHE to another folder, then run the command again"
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time fills a folder; the lock dies with its holder."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: two downloads at once may repeat work, the checksums still hold
        yield
        return
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest_of(path: Path, algorithm: str) -> str:
    """Hexadecimal digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
