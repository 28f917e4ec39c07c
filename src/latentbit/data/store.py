"""Where data lives on disk, and how a file gets there: whole under its name, or not at all."""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from latentbit.data.dataset import DataError


def cache() -> Path:
    """The folder of downloaded data: LATENTBIT_CACHE, else ~/.cache/latentbit."""
    chosen = os.environ.get("LATENTBIT_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "latentbit"


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when all of it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp makes it private; a cache is shared
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)


def remove_temporary(folder: Path) -> None:
    """Delete what writes that were killed have left; call it where no write is under way."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def explain_disk(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into an error that says where and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise DataError(
            f"can not write to {folder}: {error.strerror}. "
            "Make room or set LATENTBIT_CACHE to another folder, then run the command again"
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
