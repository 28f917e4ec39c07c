import dataclasses

import pytest
from tiny_run import tiny_recipe

from latentbit import runs
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory, RunError, changed_keys
from latentbit.training.train import Training


class Recorder:
    """Stands in for training: keeps what it was asked for, and finishes the run at once."""

    def __init__(self, stops: bool = False) -> None:
        self.asked: list[tuple] = []
        self.stops = stops

    def __call__(self, recipe: Recipe, *, out, resume, quiet) -> Training:
        self.asked.append((recipe.name, out, resume))
        run = runs.open(resume) if resume else RunDirectory.create(recipe, out)
        if not self.stops:
            run.log({"epoch": recipe.optim.epochs})
        return Training(run, None if self.stops else "scores")  # type: ignore[arg-type]


def test_a_run_is_made_continued_and_then_found(tmp_path) -> None:
    recipe, at = tiny_recipe(tmp_path), tmp_path / "run"
    assert runs.obtain(recipe, Recorder(stops=True), at=at) is None
    train = Recorder()
    for _ in range(2):
        found = runs.obtain(recipe, train, at=at)
        assert found is not None and found.finished
    assert train.asked == [("tiny", None, at)]  # the second time there was nothing to do


def test_another_recipe_in_the_folder_is_refused_with_the_keys(tmp_path) -> None:
    runs.obtain(tiny_recipe(tmp_path), Recorder(), at=tmp_path / "run")
    other = tiny_recipe(tmp_path, "lr=0.1", "options.widths=[4]", "eval_every=3")
    with pytest.raises(RunError, match=r"another recipe \(model.options, optim.lr differ\)"):
        runs.obtain(other, Recorder(), at=tmp_path / "run")


def test_a_folder_of_runs_is_searched_for_the_same_work(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path)
    renamed = dataclasses.replace(recipe, name="other")
    train = Recorder()
    runs.obtain(recipe, train, among=tmp_path / "runs")
    found = runs.obtain(
        renamed, train, among=tmp_path / "runs"
    )  # the name and how often to save do not matter
    assert found is not None and found.path.name == "tiny" and len(train.asked) == 1
    runs.obtain(tiny_recipe(tmp_path, "seed=1"), train, among=tmp_path / "runs")
    assert len(train.asked) == 2
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "recipe.toml").write_text("[nonsense]")
    assert runs.place(recipe, among=tmp_path / "runs").finished


def test_the_order_of_a_table_is_no_change(tmp_path) -> None:
    first = tiny_recipe(tmp_path, 'options={widths=[4, 8], norm="both"}')
    second = tiny_recipe(tmp_path, 'options={norm="both", widths=[4, 8]}')
    assert changed_keys(first, second) == []
    assert changed_keys(first, tiny_recipe(tmp_path, "seed=4", "epochs=9")) == [
        "model.options",
        "optim.epochs",
        "run.seed",
    ]
