"""docs/extending.md: every file on the page is written, used by every command on it, and short."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tiny_run import call, latentbit_command
from typer.testing import CliRunner

from latentbit import engine, imports, recipes
from latentbit.cli import app
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


def test_the_data_serves_in_python(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder_with_files(tmp_path))
    exec(compile(FILES["use_data.py"], "use_data.py", "exec"), {})
    assert "/397" in capsys.readouterr().out
    assert (tmp_path / "runs" / "digits_resnet18_compact_baseline" / "code" / "my_data.py").is_file()


def test_the_recipe_shows_trains_packs_and_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(folder_with_files(tmp_path))
    said = {}
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        said[command.split()[0]] = done.output
    assert "window = 1.0    a number, between 0.1 and 10\n      Weights farther from 0" in said["methods"]
    run = RunDirectory.open(tmp_path / "runs" / "mine")
    assert run.recipe().method == Method(f"{run.path}/code/my_methods.py:MedianScale", {"window": 2})
    assert run.finished and run.metrics()[-1]["latent"] > 0
    network = engine.load(tmp_path / "mine.lbit")
    assert network(np.zeros((1, 1, 8, 8), np.float32)).shape == (1, 10)
    # Moved to where the files are not, the run still has them.
    for name in ("my_methods.py", "my_networks.py", "my_losses.py", "my_data.py"):
        (tmp_path / name).unlink()
    moved = RunDirectory.open((tmp_path / "runs" / "mine").rename(tmp_path / "moved"))
    assert 'network = "code/my_networks.py:little"' in (moved.path / "recipe.toml").read_text()
    with imports.trusting():
        assert moved.network() is not None and len(moved.dataset().test) == 397


def test_a_wrong_option_is_told_before_training(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(folder_with_files(tmp_path))
    with imports.trusting(), pytest.raises(BadOption) as caught:
        train(recipes.load("mine.toml", ["method.windw=2"]), quiet=True)
    assert str(caught.value) == (
        "method my_methods.py:MedianScale, option windw: method my_methods.py:MedianScale has no such option, "
        "did you mean 'window'? its options: window"
    )
    assert not (tmp_path / "runs").exists()
