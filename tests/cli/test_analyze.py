import json
import shutil
from pathlib import Path

import pytest
import tiny_runs
from typer.testing import CliRunner

from latentbit import analyze as analysing
from latentbit.analyze import NothingToAnalyze
from latentbit.cli import app


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["analyze", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_leaves_json_and_figures_and_compares_runs(tmp_path: Path) -> None:
    runs = [tmp_path / "one", tmp_path / "two"]
    for source, copy in zip((tiny_runs.label_aware(), tiny_runs.float_run()), runs, strict=True):
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("analysis"))
    names = [str(path) for path in runs]
    shown = run(*names, "--samples", "20", "--device", "cpu")
    numbers = json.loads((runs[0] / "analysis" / "analysis.json").read_text())
    assert f"{100 * numbers['accuracy']['W']['accuracy']:.2f}" in shown
    assert f"{numbers['reconstruction']['average']:.5f}" in shown
    assert (runs[0] / "analysis" / "feature_maps.png").is_file()
    assert (runs[1] / "analysis" / "confusion.svg").is_file()
    printed = json.loads(run(*names, "--samples", "20", "--device", "cpu", "--json"))
    assert printed[names[0]] == numbers


def test_a_layer_that_is_not_there_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "one"
    shutil.copytree(tiny_runs.label_aware(), path, ignore=shutil.ignore_patterns("analysis"))
    monkeypatch.setattr(analysing, "open_run", lambda *_: pytest.fail("the run was opened"))
    result = CliRunner().invoke(app, ["analyze", str(path), "--layer", "nope"])
    assert isinstance(result.exception, NothingToAnalyze)
    assert "there is no binary convolution 'nope'" in str(result.exception) and "stages.0.0.conv" in str(
        result.exception
    )
