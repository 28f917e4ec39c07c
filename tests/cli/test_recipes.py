"""latentbit recipes: list, show, copy."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latentbit import recipes
from latentbit.cli import app
from latentbit.recipes import RecipeError

run = CliRunner().invoke
NAME = "cifar10_resnet18_compact_quick"


def test_list_shows_every_recipe_or_those_asked_for() -> None:
    lines = run(app, ["recipes", "list"]).stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == recipes.names()
    some = run(app, ["recipes", "list", "imagenet"]).stdout
    assert "imagenet_resnet18_kd" in some and "cifar10" not in some


def test_show() -> None:
    assert run(app, ["recipes", "show", NAME]).stdout == recipes.path_of(NAME).read_text()
    full = run(app, ["recipes", "show", NAME, "--full"]).stdout
    assert full.startswith(f"# latentbit train {NAME}\n# what: ")
    assert "extends" not in tomllib.loads(full) and tomllib.loads(full)["optim"]["epochs"] == 8
    changed = run(app, ["recipes", "show", NAME, "epochs=2"]).stdout
    assert changed.startswith(f"# latentbit train {NAME} epochs=2\n")
    assert tomllib.loads(changed)["optim"]["epochs"] == 2
    assert isinstance(run(app, ["recipes", "show", NAME, "epoch=2"]).exception, RecipeError)


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_a_copy_trains_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(app, ["recipes", "copy", NAME, *full]).exit_code == 0
    assert recipes.load(str(tmp_path / f"{NAME}.toml")) == recipes.load(NAME)


def test_copy_does_not_overwrite(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("# precious\n")
    assert isinstance(run(app, ["recipes", "copy", NAME, str(mine)]).exception, RecipeError)
    assert mine.read_text() == "# precious\n"
    assert run(app, ["recipes", "copy", NAME, str(mine), "--force"]).exit_code == 0
    assert mine.read_text() == recipes.path_of(NAME).read_text()
    assert isinstance(run(app, ["recipes", "copy", NAME, str(tmp_path / "x.yaml")]).exception, RecipeError)


def test_a_list_of_nothing_is_an_error_and_lists_come_as_json_too() -> None:
    out = run(app, ["recipes", "list", "nope"])
    assert out.exit_code == 1 and "no recipe has that in its name" in str(out.exception)
    found = json.loads(run(app, ["recipes", "list", "imagenet", "--json"]).stdout)
    assert {"name", "what", "paper", "here"} <= found[0].keys() and "imagenet" in found[0]["name"]
