import pytest
from tiny_run import same, tiny_recipe, weights
from typer.testing import CliRunner

from latentbit import runs
from latentbit.cli import app
from latentbit.errors import LatentbitError
from latentbit.training.interrupt import Interrupt


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


def test_the_end_says_epoch_and_images_and_what_to_do_next(tmp_path, monkeypatch) -> None:
    tiny_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = CliRunner().invoke(app, ["train", "tiny.toml", "epochs=1", "seed=0,1"])
    assert out.exit_code == 0, out.output
    assert out.output.count("epoch 1 of 1, the last; on 360 test images:") == 2
    assert "next: latentbit pack runs/tiny\n      latentbit report runs/tiny runs/tiny-2\n" in out.output
    assert [runs.open(f"runs/{name}").recipe().run.seed for name in ("tiny", "tiny-2")] == [0, 1]
    quiet = CliRunner().invoke(app, ["train", "tiny.toml", "epochs=1", "-q", "--out", "runs/quiet"])
    assert quiet.exit_code == 0 and quiet.output == "" and (tmp_path / "runs" / "quiet").is_dir()


def test_a_dry_run_tells_the_plan_and_writes_nothing(tmp_path, monkeypatch) -> None:
    tiny_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = CliRunner().invoke(app, ["train", "tiny.toml", "val=0.1", "--dry-run"])
    assert out.exit_code == 0, out.output
    assert (
        "digits: 1,437 training images, 143 of them for choosing the best epoch, 360 test images"
        in out.output
    )
    assert "3 epochs of 10 steps of 128 images on cpu" in out.output and "about" in out.output
    assert not (tmp_path / "runs").exists()


def test_a_signal_ends_the_command_with_130(tmp_path, monkeypatch) -> None:
    tiny_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Interrupt, "wanted", lambda *_: True)
    monkeypatch.setattr(Interrupt, "name", "SIGINT", raising=False)
    out = CliRunner().invoke(app, ["train", "tiny.toml", "seed=0,1"])
    assert out.exit_code == 130
    assert (
        "to continue: latentbit train --resume runs/tiny" in out.output
        and not (tmp_path / "runs" / "tiny-2").exists()
    )


def said(*arguments: str) -> str:
    out = CliRunner().invoke(app, ["train", *arguments])
    assert out.exit_code == 2, out.output
    return " ".join(out.output.replace("│", " ").split())


def test_what_a_resumed_run_cannot_change_is_explained() -> None:
    told = said("--resume", "x", "lr=4")
    assert "To change lr=4, edit x/recipe.toml and add --accept-changes" in told and "--extend" not in told
    assert "--resume x --extend epochs=4 gives it more epochs" in said("--resume", "x", "epochs=4")
    assert "--extend needs the epochs of the whole run" in said("--resume", "x", "--extend", "lr=4")
    assert "--extend needs the epochs of the whole run" in said("--resume", "x", "--extend")


def test_extend_gives_the_run_that_longer_training_gives(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_recipe(tmp_path)
    run = CliRunner()
    for out, epochs in (("short", 1), ("long", 2)):
        arguments = [
            "train",
            "tiny.toml",
            "schedule=constant",
            "loss.latent=none",
            f"epochs={epochs}",
            "--out",
            out,
        ]
        assert run.invoke(app, arguments).exit_code == 0
    assert run.invoke(app, ["train", "--resume", "short", "--extend", "epochs=2"]).exit_code == 0
    assert same(weights(tmp_path / "short"), weights(tmp_path / "long"))
    assert "epochs = 2" in (tmp_path / "short" / "recipe.toml").read_text()
