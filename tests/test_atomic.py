"""atomic: a file is whole under its name or not there, whatever happens."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from latentbit.atomic import WriteError, atomic_write, remove_temporary


def test_atomic_write(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.bin"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new" and os.listdir(path.parent) == ["x.bin"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with pytest.raises(WriteError if isinstance(error, OSError) else type(error)):
        with atomic_write(path) as file:
            file.write(b"half")
            raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.bin"]


def test_a_write_that_the_system_refuses_says_what_it_needs_and_what_to_do(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(
        WriteError, match=r"x.bin: cannot be written \(No space.*takes 5,000 bytes, and .* free.*room"
    ):
        with atomic_write(tmp_path / "x.bin") as file:
            file.write(b"0" * 2000)
            file.write(bytearray(3000))
            raise full
    with pytest.raises(
        WriteError, match="Read-only file system.: make the folder writable, or choose another"
    ):
        with atomic_write(tmp_path / "x.bin"):
            raise OSError(errno.EROFS, "Read-only file system")
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="file/x.bin: cannot be written"):
        with atomic_write(tmp_path / "file" / "x.bin"):
            pass
    assert os.listdir(tmp_path) == ["file"]


def _write_for_ever(path: Path) -> None:
    with atomic_write(path) as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
            time.sleep(0.001)


def test_a_killed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    writer = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(path,))
    writer.start()
    while not any(p.suffix == ".tmp" and p.stat().st_size for p in tmp_path.iterdir()):
        time.sleep(0.001)
    os.kill(writer.pid or 0, signal.SIGKILL)
    writer.join()
    assert path.read_bytes() == b"old"
    remove_temporary(tmp_path)
    assert os.listdir(tmp_path) == ["x.bin"]
