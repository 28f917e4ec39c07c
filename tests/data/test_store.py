"""store: a file is whole under its name or not there, whatever happens."""

import errno
import multiprocessing
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


def test_full_disk_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No space left on device. Free some space or set LATENTBIT_CACHE"):
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
