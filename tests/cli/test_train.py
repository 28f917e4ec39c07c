import pytest
from tiny_run import tiny_recipe
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.errors import LatentbitError


def test_train_eval_and_resume_from_the_command_line(tmp_path, monkeypatch) -> None:
    tiny_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    out = run.invoke(app, ["train", "tiny.toml", "epochs=1"])
    assert out.exit_code == 0, out.output
    assert "epoch 1/1" in out.output and "run in runs/tiny" in out.output and "W†" in out.output
    evaluated = run.invoke(app, ["eval", "runs/tiny"])
    assert evaluated.exit_code == 0 and "/360" in evaluated.output
    assert run.invoke(app, ["train", "--resume", "runs/tiny"]).exit_code == 0
    assert run.invoke(app, ["train", "tiny.toml", "epochs=1"]).exit_code == 0
    assert (tmp_path / "runs" / "tiny-2").is_dir()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train"], "give a recipe to start or --resume"),
        (["train", "digits_resnet18_compact", "--resume", "x"], "one of the two"),
        (["train", "--resume", "x", "--out", "y"], "keeps its recipe and place"),
    ],
)
def test_contradictory_arguments_are_explained(arguments, message) -> None:
    out = CliRunner().invoke(app, arguments)
    assert out.exit_code == 2 and message in " ".join(out.output.replace("│", " ").split())


def test_errors_name_what_is_wrong(tmp_path) -> None:
    out = CliRunner().invoke(app, ["train", "--resume", str(tmp_path / "nowhere")])
    assert isinstance(out.exception, LatentbitError) and "nowhere does not exist" in str(out.exception)
    out = CliRunner().invoke(app, ["train", "digits_resnet18_compact", "epoch=2", "lr=-1"])
    assert "2 problems" in str(out.exception) and "epochs" in str(out.exception)
