"""store: a file is whole under its name or not there, whatever happens."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from latentbit.data import store
from latentbit.data.dataset import DataError


def test_cache_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", "~/elsewhere")
    assert store.cache() == Path.home() / "elsewhere"
    monkeypatch.delenv("LATENTBIT_CACHE")
    assert store.cache() == Path.home() / ".cache" / "latentbit"


def test_atomic_write(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.bin"
    with store.atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new" and os.listdir(path.parent) == ["x.bin"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        with store.atomic_write(path) as file:
            file.write(b"half")
            raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.bin"]


def _write_for_ever(path: Path) -> None:
    with store.atomic_write(path) as file:
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
    store.remove_temporary(tmp_path)
    assert os.listdir(tmp_path) == ["x.bin"]


def test_full_disk_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No space left on device. Make room or set LATENTBIT_CACHE"):
        with store.explain_disk(tmp_path):
            raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError), store.explain_disk(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "x")


def _hold(folder: Path, log: Path) -> None:
    with store.locked(folder):
        with log.open("a") as file:
            file.write("in ")
        time.sleep(0.05)
        with log.open("a") as file:
            file.write("out ")


def test_lock_lets_one_in_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    holders = [context.Process(target=_hold, args=(tmp_path / "x", log)) for _ in range(3)]
    for holder in holders:
        holder.start()
    for holder in holders:
        holder.join()
    assert log.read_text() == "in out " * 3


def test_digest(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert store.digest_of(tmp_path / "x", "md5") == "900150983cd24fb0d6963f7d28e17f72"  # RFC 1321
