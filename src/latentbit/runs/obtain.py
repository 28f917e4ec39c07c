"""The finished run of a recipe: found, continued where it stopped, or trained."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from latentbit.errors import LatentbitError
from latentbit.imports import without_folder
from latentbit.recipes import Recipe
from latentbit.recipes.schema import toml_value
from latentbit.runs.directory import RunDirectory, RunError, new_path


class Train(Protocol):
    """What trains a recipe: latentbit.training.train.train, which stands to the right of this module."""

    def __call__(
        self, recipe: Recipe, *, out: Path | None, resume: Path | None, quiet: bool
    ) -> tuple[RunDirectory, Any]:
        """The run, and its accuracies unless a signal stopped it."""
        ...


@dataclass(frozen=True)
class Place:
    """Where the run of a recipe is, or shall be."""

    recipe: Recipe
    path: Path
    begun: bool
    finished: bool


def place(recipe: Recipe, *, at: Path | None = None, among: Path | None = None) -> Place:
    """Find the run of a recipe: in the folder `at` itself, or any that did the same work in the folder `among`."""
    if (at is None) == (among is None):
        raise ValueError("give the folder of the run (at) or the folder to look in (among), one of the two")
    if among is not None:
        found = _same_work(recipe, among)
        if found is None:
            return Place(recipe, new_path(among, recipe.name), False, False)
        return Place(found.recipe(), found.path, True, found.finished)
    assert at is not None
    if not (at / "recipe.toml").is_file():
        return Place(recipe, at, False, False)
    run = RunDirectory.open(at)
    if odd := changed_keys(run.recipe(), recipe, WORK):
        raise RunError(
            f"{at} holds a run of another recipe ({', '.join(odd)} differ): choose another --out or remove it"
        )
    return Place(run.recipe(), at, True, run.finished)


def obtain(
    recipe: Recipe, train: Train, *, at: Path | None = None, among: Path | None = None, quiet: bool = False
) -> RunDirectory | None:
    """The finished run of a recipe: found, continued or trained. None if a signal stopped the training."""
    found = place(recipe, at=at, among=among)
    if found.finished:
        return RunDirectory.open(found.path)
    out, resume = (None, found.path) if found.begun else (found.path, None)
    run, scores = train(found.recipe, out=out, resume=resume, quiet=quiet)
    return None if scores is None else run


WORK = ("data", "model", "method", "loss", "optim")
"""Sections that the weights depend on. Of [run] only the seed does: the device and how often to save do not count."""


def changed_keys(first: Recipe, second: Recipe, sections: Sequence[str] = (*WORK, "run")) -> list[str]:
    """Keys in which two recipes differ, as section.key; the seed always counts, the name never does."""
    found = []
    for section in sections:
        ours, theirs = getattr(first, section), getattr(second, section)
        for field in fields(ours):
            if _written(getattr(ours, field.name)) != _written(getattr(theirs, field.name)):
                found.append(f"{section}.{field.name}")
    before, after = dict(first.first), dict(second.first)
    found += [
        f"first.{key}"
        for key in dict.fromkeys([*before, *after])
        if key not in before or key not in after or _written(before[key]) != _written(after[key])
    ]
    if "run" not in sections and first.run.seed != second.run.seed:
        found.append("run.seed")
    return found


def _written(value: Any) -> str:
    """As TOML. The order of a table's keys means nothing, and a file of the user's own may be the copy in the run."""
    if isinstance(value, str):
        return toml_value(without_folder(value))
    return toml_value(dict(sorted(value.items())) if hasattr(value, "items") else value)


def _same_work(wanted: Recipe, folder: Path) -> RunDirectory | None:
    """A run of the same work: a finished one first, else the one that got furthest."""
    found = []
    for file in sorted(folder.glob("*/recipe.toml")):
        run = RunDirectory(file.parent)
        try:
            same = not changed_keys(run.recipe(), wanted, WORK)
        except LatentbitError:  # of another version
            continue
        if same:
            found.append(run)
    return max(found, key=lambda run: (run.finished, len(run.metrics())), default=None)
