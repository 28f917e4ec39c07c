"""Files that are whole under their name, or not there at all: temporary, fsync, rename."""

import contextlib
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from latentbit.errors import LatentbitError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WriteError(LatentbitError):
    """A file that the system does not let us write. What had its name before is still there, whole."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what = what


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when all of it is on the disk; WriteError if it cannot be."""
    file: _Counted | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with _Counted(io.FileIO(handle, "wb")) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # mkstemp makes it private; runs and caches are shared
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself
        finally:
            os.close(folder)
    except OSError as error:
        raise _write_error(path, error, file.n_bytes if file is not None else 0) from error


class _Counted(io.BufferedWriter):
    """Knows how much it was given to write, also of a write that failed."""

    n_bytes = 0

    def write(self, content: Any, /) -> int:
        self.n_bytes += memoryview(content).nbytes
        return super().write(content)


def _write_error(path: Path, error: OSError, n_bytes: int) -> WriteError:
    what = f"{path}: cannot be written ({error.strerror or error})"
    if error.errno in FULL:
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(path.parent).free
            what += f": it takes {n_bytes:,} bytes, and {free:,} are free"
        return WriteError(what, "make room there, or choose another folder")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return WriteError(what, "make the folder writable, or choose another")
    return WriteError(what, "choose another place")


def remove_temporary(folder: Path) -> None:
    """Delete what writes that were killed have left; call it where no write is under way."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
