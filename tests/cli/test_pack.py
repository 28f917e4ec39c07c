import json
from pathlib import Path

import pytest
import run_directory
from typer.testing import CliRunner

from latentbit import lbit
from latentbit.cli import app


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_directory.make(tmp_path_factory.mktemp("runs") / "small")


def test_pack_writes_the_file_and_shows_the_report(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.lbit"
    result = CliRunner().invoke(app, ["pack", str(run), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert lbit.read(out).classes == tuple("0123456789")
    assert "stages.0.0.conv" in result.output and "x smaller" in result.output
    assert "same class on 360 of 360 images" in result.output
    assert f"{out.stat().st_size:,}" in result.output


def test_pack_as_json_beside_the_run(run: Path) -> None:
    result = CliRunner().invoke(app, ["pack", str(run), "--json", "--float-bits", "16"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["file"] == str(run / "model.lbit")
    assert report["file_bytes"] == (run / "model.lbit").stat().st_size
    assert report["with_float32"]["n_images"] == 360


def test_bad_options(run: Path) -> None:
    for wrong in (["--float-bits", "4"], ["--stem-bits", "4"], ["--which", "first"]):
        result = CliRunner().invoke(app, ["pack", str(run), *wrong])
        assert result.exit_code == 2 and wrong[0] in result.output
