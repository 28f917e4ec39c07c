"""A run that was copied to a machine without its data set: what reads a run's own files works there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import run_directory

REFUSED = """
import socket, sys
def refuse(*args, **kwargs):
    raise OSError("network access refused by the test")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from latentbit.cli import main
sys.argv[0] = "latentbit"
main()
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_directory.make_without_data(tmp_path_factory.mktemp("copied") / "run")


def latentbit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"LATENTBIT_CACHE": str(folder / "empty"), "COLUMNS": "200"}
    command = [sys.executable, "-c", REFUSED, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)


def test_pack_cost_info_and_run(copied: Path, tmp_path: Path) -> None:
    packed = latentbit(tmp_path, "pack", str(copied), "-o", "net.lbit")
    assert packed.returncode == 0, packed.stderr
    assert "checked on noise        no test images here: cifar10 is not in" in packed.stdout
    assert "same class on 100 of 100 images" in packed.stdout and "accuracy" not in packed.stdout
    assert (tmp_path / "net.lbit").is_file()
    cost = latentbit(tmp_path, "cost", str(copied))
    assert cost.returncode == 0 and "input 3x32x32" in cost.stdout, cost.stderr
    info = latentbit(tmp_path, "info", str(copied))
    assert info.returncode == 0 and "cifar10: 50,000 training" in info.stdout, info.stderr
    from PIL import Image

    Image.new("RGB", (32, 32)).save(tmp_path / "black.png")
    done = latentbit(tmp_path, "run", "net.lbit", "black.png")
    assert done.returncode == 0 and "black.png" in done.stdout, done.stderr


def test_what_needs_images_says_how_to_get_them(copied: Path, tmp_path: Path) -> None:
    done = latentbit(tmp_path, "eval", str(copied))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "run `latentbit data get cifar10`" in done.stderr
