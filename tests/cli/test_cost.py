import json

import pytest
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.errors import LatentbitError


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["cost", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_table_shows_layers_kinds_totals_and_the_paper() -> None:
    output = run("resnet18", "--input", "224")
    for shown in (
        "stages.3.3.conv",
        "binary conv",
        "prelu",
        "1,676.28M",
        "28.29 Mbit",
        "1.185e+08",
        "1.21e+08",
    ):
        assert shown in output
    assert "beside the paper's table" in output


def test_json_holds_the_same_numbers() -> None:
    report = json.loads(run("resnet34", "--input", "224", "--shortcut", "conv", "--json"))
    assert report["total"]["bops"] == 3_525_967_872
    assert report["mbit"] == pytest.approx(44.5, abs=0.1)
    assert {line["quantity"] for line in report["paper"]} >= {"BOPs", "memory, Mbit"}


def test_options_reach_the_network() -> None:
    report = json.loads(
        run("resnet18_compact", "--input", "8", "--channels", "1", "--classes", "7", "--json")
    )
    assert report["input"] == [1, 8, 8] and report["paper"] == []
    fc = [layer for layer in report["layers"] if layer["name"] == "fc"]
    assert fc[0]["macs"] == 64 * 7
    real = json.loads(run("resnet18_compact", "--real", "--json"))
    assert real["total"]["binary_params"] == real["total"]["bops"] == 0


def test_unknown_network_names_the_nearest() -> None:
    with pytest.raises(LatentbitError, match="did you mean 'resnet18'"):
        run("resnet19")


def test_the_input_is_the_networks_own_unless_told() -> None:
    assert "resnet18, input 3x224x224" in run("resnet18") and "1.21e+08" in run("resnet18")
    assert "resnet20, input 3x32x32" in run("resnet20")
    assert "resnet20, input 3x64x64" in run("resnet20", "--input", "64")
