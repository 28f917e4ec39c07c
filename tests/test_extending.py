"""docs/extending.md: every file on the page is written, used by every command on it, and short."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_run import call, latentbit_command

from latentbit import engine, recipes
from latentbit.imports import CannotImport
from latentbit.methods.parts.binarizer import BadOption
from latentbit.recipes import Method
from latentbit.runs.directory import RunDirectory
from latentbit.training.train import train

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
FILES = {name: text for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)}
COMMANDS = re.findall(r"^    latentbit (.*)$", PAGE, re.MULTILINE)


def folder_with_files(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", FILES)
def test_each_is_shorter_than_30_lines(name) -> None:
    assert len(FILES[name].splitlines()) < 30


def test_the_method_serves_a_model_in_python(tmp_path) -> None:
    code = [latentbit_command()[0], "use_method.py"]
    done = call(code, folder_with_files(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "binarized 2 layers with 2 methods, kept 2 real\n"
        "  binary  1  sign\n"
        "  binary  2  my_methods:MedianScale (window=1.5)\n"
        "  real    0  (kept by keep=)\n"
        "  real    3  (kept by keep=)\n"
    )


def test_the_recipe_shows_trains_packs_and_runs(tmp_path) -> None:
    folder_with_files(tmp_path)
    said = {}
    for command in COMMANDS:
        done = call(latentbit_command(*shlex.split(command)), tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        said[command.split()[0]] = done.stdout
    assert "window = 1.0    a number, between 0.1 and 10\n      Weights farther from 0" in said["methods"]
    run = RunDirectory.open(tmp_path / "runs" / "mine")
    assert run.recipe().method == Method("my_methods:MedianScale", {"window": 2})
    assert run.finished and run.metrics()[-1]["latent"] > 0
    network = engine.load(tmp_path / "mine.lbit")
    assert network(np.zeros((1, 1, 8, 8), np.float32)).shape == (1, 10)
    # The run can be read where its modules are not; building its network needs them.
    for name in ("my_methods.py", "my_networks.py", "my_losses.py"):
        (tmp_path / name).unlink()
    assert run.recipe().model.network == "my_networks:little"
    with pytest.raises(
        CannotImport, match="my_networks:little: there is no module 'my_networks'; install the pack"
    ):
        run.network()


def test_a_wrong_option_is_told_before_training(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(folder_with_files(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(BadOption) as caught:
            train(recipes.load("mine.toml", ["method.windw=2"]), quiet=True)
    finally:
        for name in ("my_methods", "my_networks", "my_losses"):
            sys.modules.pop(name, None)
    assert str(caught.value) == (
        "method my_methods:MedianScale, option windw: method my_methods:MedianScale has no such option, "
        "did you mean 'window'? its options: window"
    )
    assert not (tmp_path / "runs").exists()
