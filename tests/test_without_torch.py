"""A plain install has no torch and none of the packages of the extras: packed networks run all the same.

The packages are hidden from a fresh interpreter, which answers many command lines; tests/test_wheels.py installs for
real, and takes longer.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from lbit_examples import tiny
from PIL import Image

from latentbit import lbit
from latentbit.errors import EXTRAS, not_installed

ROOT = Path(__file__).parents[1]

HIDING = """
import contextlib, io, json, sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HIDDEN = set(json.loads(sys.argv[1]))
sys.meta_path.insert(0, Hide())
from latentbit import cli

for line in json.loads(sys.argv[2]):
    sys.argv = ["latentbit", *line]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def answers(folder: Path, *lines: list[str]) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of each command line, in an interpreter that finds no package of an extra."""
    hidden = json.dumps(sorted(EXTRAS))
    done = subprocess.run(
        [sys.executable, "-c", HIDING, hidden, json.dumps(lines)], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lbit.write(tiny(), tmp_path / "model.lbit")
    Image.fromarray(np.array([[10, 200]], np.uint8)).save(tmp_path / "image.png")
    return tmp_path


def test_packed_networks_run(folder: Path) -> None:
    ran, timed, exported, informed, version = answers(
        folder,
        ["run", "model.lbit", "image.png", "--json"],
        ["bench", "model.lbit", "--seconds", "0.01", "--batch", "1", "--threads", "1"],
        ["export", "model.lbit", "--to", "c", "-o", "net"],
        ["info"],
        ["--version"],
    )
    codes = [answer[0] for answer in (ran, timed, exported, informed, version)]
    assert codes == [0] * 5, (ran, timed, exported, informed, version)
    assert (folder / "net" / "net.c").is_file()
    expected = np.exp(tiny_logits())
    guess = json.loads(ran[1])
    shown = dict(zip(guess["classes"], guess["probabilities"], strict=True))
    np.testing.assert_allclose([shown[name] for name in "abc"], expected / expected.sum(), rtol=1e-5)
    assert "latentbit" in informed[1]


def tiny_logits() -> np.ndarray:
    """Logits of the file by hand: the picture is (10, 200) / 255, its signs after the mean of 0.5 are -1 and +1."""
    signs = np.array([[1, -1], [-1, -1], [1, 1]])
    return signs @ np.array([-1, 1]) * np.array([0.5, 1, 2]) + np.array([0, -1, 0.25])


NEED_MORE = [
    ["train", "digits_resnet18_compact"],
    ["eval", "runs/a"],
    ["pack", "runs/a", "-o", "a.lbit"],
    ["cost", "resnet18"],
    ["analyze", "runs/a"],
    ["report", "runs/a"],
    ["reproduce", "table3"],
    ["compare", "--quick"],
    ["demo"],
    ["methods", "list"],
    ["run", "model.lbit", "digits"],
]


def test_what_needs_more_says_which_line_to_type(folder: Path) -> None:
    for (code, _, err), line in zip(answers(folder, *NEED_MORE), NEED_MORE, strict=True):
        assert code == 1, (line, err)
        assert err.startswith(f"error: latentbit {line[0]} needs ") and err.count("\n") == 1, (line, err)
        assert "pip install 'latentbit[train]'" in err, line


def test_every_help_is_there(folder: Path) -> None:
    for code, out, err in answers(folder, *([line[0], "--help"] for line in NEED_MORE)):
        assert code == 0 and "Usage" in out, (out, err)


def test_python_says_it_too(tmp_path: Path) -> None:
    code = HIDING.partition("from latentbit import cli")[0] + (
        "import latentbit\n"
        "assert latentbit.engine.load and latentbit.lbit.read\n"
        "try:\n    latentbit.binarize_\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, '["torch"]'], capture_output=True, text=True)
    line = "latentbit.binarize_ needs torch, which is not installed. Type:  pip install 'latentbit[train]'\n"
    assert (done.stdout, done.stderr) == (line, "")


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    imported_as = {"scikit-learn": "sklearn"}
    for package, extra in EXTRAS.items():
        brought = [line.partition(">")[0] for line in project["optional-dependencies"][extra]]
        assert package in [imported_as.get(name, name) for name in brought]
    base = {line.partition(">")[0] for line in project["dependencies"]}
    assert base == {"numpy", "pillow", "typer", "rich"}


def test_a_stranger_s_missing_module_stays_as_it_is() -> None:
    error = ModuleNotFoundError("No module named 'my_net'", name="my_net")
    assert not_installed(error, "latentbit train") is error
