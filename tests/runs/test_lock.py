import os
import platform
import signal
import subprocess
import sys
import time

import pytest

from latentbit.runs import RunIsBusy, RunLock

HOLD = """
import sys, time
from pathlib import Path
from latentbit.runs import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    if "fork" in sys.argv:
        import os
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
        print("forked", flush=True)
    time.sleep(60)
"""


def holder(path, *more: str) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *more], stdout=subprocess.PIPE, text=True
    )
    for _ in range(1 + len(more)):
        process.stdout.readline()
    return process


def test_the_second_process_is_told_who_holds_the_run(tmp_path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(
            RunIsBusy, match=rf"being trained by process {process.pid} on {platform.node()} since 20"
        ):
            RunLock(tmp_path).__enter__()
    finally:
        process.kill()
        process.wait()


def test_a_killed_process_leaves_no_lock(tmp_path) -> None:
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (tmp_path / ".running.json").is_file()  # what it left does not matter
    with RunLock(tmp_path):
        pass
    assert not (tmp_path / ".running.json").exists()


def test_children_of_a_killed_process_are_waited_for(tmp_path) -> None:
    process = holder(tmp_path, "fork")
    process.kill()
    process.wait()
    started = time.monotonic()
    with RunLock(tmp_path):
        assert time.monotonic() - started < 30


def test_it_can_be_taken_again_after_it_was_given_back(tmp_path) -> None:
    for _ in range(2):
        with RunLock(tmp_path / "new"):
            assert (tmp_path / "new" / ".running.json").is_file()
