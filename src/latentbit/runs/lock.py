"""One process trains a run at a time. The lock is the system's: it ends with its process, however that ends."""

import contextlib
import json
import os
import platform
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock

from latentbit.atomic import atomic_write
from latentbit.errors import LatentbitError

ORPHANS_SECONDS = 30.0
"""Decoding processes of a killed training hold its lock until they notice, a few seconds later."""


class RunIsBusy(LatentbitError):
    """Another process trains this run."""


class RunLock:
    """`with RunLock(path): ...` Raises RunIsBusy, which names the process that holds the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holder = path / ".running.json"
        self.lock = filelock.FileLock(path / ".lock")

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            self.lock.acquire(timeout=0)
        except filelock.Timeout:
            if not self._holder_is_dead():
                raise RunIsBusy(self._busy()) from None
            try:
                self.lock.acquire(timeout=ORPHANS_SECONDS)
            except filelock.Timeout:
                raise RunIsBusy(self._busy()) from None
        who = {
            "pid": os.getpid(),
            "host": platform.node(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        }
        try:
            with atomic_write(self.holder) as file:
                file.write(json.dumps(who).encode())
        except BaseException:
            self.lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self.holder.unlink(missing_ok=True)
        self.lock.release()

    def _who(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.holder.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _holder_is_dead(self) -> bool:
        who = self._who()
        if who.get("host") != platform.node() or not isinstance(who.get("pid"), int):
            return False
        try:
            os.kill(who["pid"], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False

    def __str__(self) -> str:
        who = self._who()
        return f"process {who.get('pid', '?')} on {who.get('host', '?')} since {who.get('since', '?')}"

    def _busy(self) -> str:
        return f"{self.path} is being trained by {self}: wait for it, stop it, or choose another --out"


def holder_of(path: Path) -> str:
    """Who trains a run now, in words; nothing if nobody does."""
    lock = RunLock(path)
    if not lock.holder.is_file():
        return ""
    try:
        with lock.lock.acquire(timeout=0):
            return ""
    except (filelock.Timeout, OSError):
        return str(lock)
