"""What people install: the wheels in clean environments, without torch and without a compiler.

Building takes minutes and installing needs PyPI, so these run with `make test-all` (and `make test-wheels`).
"""

import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

import arm_python
import numpy as np
import pytest
from lbit_examples import every_op
from PIL import Image

from latentbit import lbit

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="wheels are built on x86-64"),
]

# Hexadecimal floats, so that answers are compared bit for bit.
LOGITS = """
import sys, numpy
from latentbit import engine
images = numpy.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype(numpy.float32)
print([value.hex() for value in map(float, engine.load(sys.argv[1])(images).ravel())])
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    arches = ["x86_64", "aarch64"] if arm_python.missing() is None else ["x86_64"]
    chosen = [word for arch in arches for word in ("--arch", arch)]
    script = ROOT / "packaging" / "wheels.py"
    done = subprocess.run(
        [sys.executable, script, "--python", sys.executable, "-o", folder, *chosen],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("manylinux2014" in path.name for path in folder.iterdir())
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    lbit.write(every_op(), folder / "model.lbit")
    pixels = np.random.default_rng(1).integers(0, 256, (6, 6, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "image.png")
    return folder


def expected(files: Path) -> str:
    """What this checkout computes."""
    script = ["-c", LOGITS, str(files / "model.lbit")]
    return subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True).stdout


def answers(python: list[str], files: Path, environment: dict[str, str]) -> tuple[str, dict[str, object]]:
    """What an installed latentbit computes from Python, and what its command line says about an image."""

    def call(*words: object) -> str:
        line = [*python, *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = call("-m", "latentbit", "run", files / "model.lbit", files / "image.png", "--json")
    return call("-c", LOGITS, files / "model.lbit"), json.loads(told)


def test_clean_environment_without_compiler_or_torch(wheels: Path, files: Path, tmp_path: Path) -> None:
    (wheel,) = wheels.glob("*x86_64.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    nowhere = {"PATH": str(tmp_path)} | {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], env=nowhere, check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    names = {package["name"].lower() for package in json.loads(listed.stdout)}
    assert {"latentbit", "numpy", "pillow", "typer", "rich"} <= names
    assert not names & {"torch", "safetensors", "matplotlib", "scikit-learn", "scipy", "jinja2"}
    logits, guess = answers([python], files, nowhere)
    assert logits == expected(files)
    assert guess["path"] == str(files / "image.png")


@pytest.mark.skipif(arm_python.missing() is not None, reason=str(arm_python.missing()))
def test_aarch64_under_emulation(wheels: Path, files: Path, tmp_path: Path) -> None:
    (wheel,) = wheels.glob("*aarch64.whl")
    site = tmp_path / "site"
    platforms = [word for tag in ("2014", "_2_28") for word in ("--platform", f"manylinux{tag}_aarch64")]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--python-version", "3.11"]
        + [*platforms, "--target", str(site), str(wheel)],
        check=True,
    )
    python = arm_python.unpack(Path(os.environ.get("LATENTBIT_ARM", tmp_path / "arm")))
    logits, guess = answers(python, files, os.environ | {"PYTHONPATH": str(site)})
    assert logits == expected(files)
    assert guess["path"] == str(files / "image.png")
