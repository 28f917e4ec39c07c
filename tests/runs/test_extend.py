"""More epochs for a run: allowed where nothing that was trained would have been different."""

from dataclasses import replace
from pathlib import Path

import pytest
import run_directory

from latentbit import recipes
from latentbit.runs import RunDirectory, RunError, extend
from latentbit.runs.extend import hindrance, only_extended


def recipe(*changes: str) -> recipes.Recipe:
    return recipes.load("digits_resnet18_compact_baseline", ["schedule=constant", "epochs=3", *changes])


def test_what_depends_on_the_number_of_epochs_hinders() -> None:
    assert hindrance(recipe()) == hindrance(recipe("method=bnn")) == ""
    assert "its learning rate falls to 0 at epoch 3 (schedule = 'cosine')" in hindrance(
        recipe("schedule=cosine")
    )
    assert hindrance(recipe("method=irnet")) == "method irnet changes over the 3 epochs of the run"
    assert hindrance(recipe("method=irnet", "binarize=false")) == ""


def test_a_recipe_with_nothing_but_more_epochs_goes_on(tmp_path: Path) -> None:
    longer, other = recipe("epochs=5"), recipe("epochs=5", "lr=1")
    assert only_extended(recipe(), longer) and not only_extended(longer, recipe())
    assert not only_extended(recipe(), other) and not only_extended(recipe(), recipe())
    cosine = replace(recipe(), optim=replace(recipe().optim, schedule="cosine"))
    assert not only_extended(cosine, replace(cosine, optim=replace(cosine.optim, epochs=5)))


def test_the_recipe_of_the_run_gets_the_epochs_or_stays(tmp_path: Path) -> None:
    run = RunDirectory.open(run_directory.make(tmp_path / "run", "schedule=constant", "epochs=3"))
    assert extend(run, 5) == run.recipe() and run.recipe().optim.epochs == 5
    with pytest.raises(RunError, match="has 5 epochs: --extend gives it more, not 4"):
        extend(run, 4)
    falling = RunDirectory.open(run_directory.make(tmp_path / "falling", "epochs=3"))
    with pytest.raises(RunError, match="cannot be extended: .* Train anew with epochs=5, or .*epochs=2"):
        extend(falling, 5)
    assert falling.recipe().optim.epochs == 3
