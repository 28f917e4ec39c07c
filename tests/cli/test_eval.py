import json

from tiny_run import tiny_recipe
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.runs import RunDirectory
from latentbit.training.train import train


def test_json_holds_counts_and_intervals(tmp_path) -> None:
    run, scores = train(tiny_recipe(tmp_path, "epochs=1", "latent=none"), out=tmp_path / "run", quiet=True)
    out = CliRunner().invoke(app, ["eval", str(run.path), "--which", "last", "--json"])
    found = json.loads(out.output)
    assert found["B"]["correct"] == scores.binary.correct and found["B"]["total"] == 360
    assert found["W"]["correct"] == scores.stale.correct
    low, high = found["W†"]["interval"]
    assert low <= found["W†"]["accuracy"] <= high
    assert RunDirectory.open(run.path).metrics()[-1]["accuracy_b"] == found["B"]["accuracy"]


def test_which_is_best_or_last(tmp_path) -> None:
    out = CliRunner().invoke(app, ["eval", str(tmp_path), "--which", "first"])
    assert out.exit_code == 2
