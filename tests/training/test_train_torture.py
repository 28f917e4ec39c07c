"""The short form of `make torture`, which also fills disks, kills torchrun's workers and sets the clock back."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_abused_trainings_end_bit_for_bit_alike() -> None:
    script = Path(__file__).parents[1] / "torture.py"
    done = subprocess.run([sys.executable, script, "--short"], capture_output=True, text=True, timeout=1200)
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row[0].strip("| ") for row in rows] == ["kills", "writes", "processes"]
    assert all(row[2] == "yes" for row in rows)
