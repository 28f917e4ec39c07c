"""The paper's tables with our numbers beside them: runs what is missing, reuses what is finished.

A run is reused if its data, model, loss, optimizer and seed are those of the recipe; one that was interrupted
is continued. Accuracies are those of the last epoch: the best one would have been chosen on the test set.
"""

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from latentbit import recipes, runs
from latentbit.errors import LatentbitError, nearest
from latentbit.paper.tables import COMPLEXITY, IMAGENET_CLASSES, NAMES, TABLES, PaperTable, Printed
from latentbit.recipes import Recipe
from latentbit.runs import RUNS, RunDirectory
from latentbit.runs.obtain import WORK
from latentbit.training.jobs import Job, Result, train_all
from latentbit.views.numbers import B

Scale = Literal["full", "quick", "digits"]
SCALES = {
    "full": "{epochs} epochs instead of those of the paper",
    "quick": "{epochs} epochs instead of 300, and only networks that 2 cores can train",
    "digits": "{epochs} epochs on the embedded digits instead of CIFAR-10, BatchNorm on both sides of the convolutions",
}
OURS = "ours: on the test images after the last epoch of each run"
EPOCHS: dict[Scale, int] = {"quick": 8, "digits": 15}
TOO_LARGE = ("wrn22", "vgg_small")


class UnknownTable(LatentbitError):
    """A table that the paper does not have."""


class NoSuchImages(LatentbitError):
    """A folder of images for a table that needs none."""


class TakenKey(LatentbitError):
    """A key=value that an option or the table sets."""


class NothingToTrain(LatentbitError):
    """Options of trainings for a table that is counted."""


@dataclass(frozen=True)
class Line:
    """One number of ours beside the paper's; None where it is left out or not there yet."""

    row: str
    column: str
    ours: float | None
    paper: float
    spread: float | None = None
    """Standard deviation over seeds, if there are several."""
    runs: tuple[str, ...] = ()
    note: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else self.ours - self.paper


@dataclass(frozen=True)
class Reproduced:
    """A table as far as it is known."""

    name: str
    title: str
    scale: Scale
    lines: tuple[Line, ...]
    stopped: bool = False
    """A signal ended the work; the same call goes on with it."""
    epochs: int | None = None
    """Of every run, where it is not the recipe that says."""
    changes: tuple[str, ...] = ()
    """key=value that every run has instead of what its recipe says."""

    @property
    def scaled_down(self) -> str:
        """What differs from the paper; empty where nothing does."""
        parts = [] if self.epochs is None else [SCALES[self.scale].format(epochs=self.epochs)]
        parts += [f"{', '.join(self.changes)} in every run"] if self.changes else []
        return "; ".join(parts)

    @property
    def file_name(self) -> str:
        """table1, table1_quick, table1_epochs30, table1_image_size16."""
        scale = "" if self.scale == "full" else f"_{self.scale}"
        return f"{self.name}{scale}{_epochs_suffix(self.scale, self.epochs)}{_changes_suffix(self.changes)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        lines = [asdict(line) | {"difference": line.difference} for line in self.lines]
        return {
            "table": self.name,
            "title": self.title,
            "scale": self.scale,
            "epochs": self.epochs,
            "changes": list(self.changes),
            "lines": lines,
        }


def reproduce(
    name: str,
    changes: Sequence[str] = (),
    *,
    scale: Scale = "full",
    epochs: int | None = None,
    seeds: int = 1,
    folder: Path = RUNS,
    jobs: int = 1,
    root: Path | None = None,
    quiet: bool = False,
) -> Reproduced:
    """Train whatever the table needs and `folder` does not have, `jobs` at a time, then read the numbers.

    `changes` are "key=value" for every recipe; `epochs` instead of those of the recipes, or of the scale.
    Of a table of ImageNet nothing is trained without `root`, the folder of its images: runs that are there are read.
    """
    if name == COMPLEXITY:
        if scale != "full" or epochs or seeds > 1 or root is not None or changes:
            raise NothingToTrain(
                f"table {name!r} counts operations of the paper's networks and trains nothing: leave out --quick,"
                " --digits, --epochs, --seeds, --root and key=value"
            )
        return _complexity()
    if name not in TABLES:
        raise UnknownTable(f"no table {name!r}{nearest(name, NAMES) or '.'} There are {', '.join(NAMES)}")
    table, epochs = TABLES[name], epochs or EPOCHS.get(scale)
    _refuse_taken_keys(changes, table)
    chosen = partial(scaled, scale=scale, epochs=epochs, changes=changes)
    wanted = _recipes(table, chosen, seeds)
    empty = Reproduced(name, table.title, scale, (), epochs=epochs, changes=tuple(changes))
    if root is not None and not table.images:
        raise NoSuchImages(f"table {name!r} has its own data set: --root is for those of ImageNet")
    if table.images and root is None:
        there = {one.name: _trained(one, folder, table) for one in wanted}
        return replace(empty, lines=_read(table, chosen, seeds, there))
    if root is not None:
        wanted = [replace(one, data=replace(one.data, root=str(root))) for one in wanted]
    done = train_all([Job(one.name, runs.place(one, among=folder)) for one in wanted], jobs, quiet=quiet)
    stopped = any(result is None for result in done.values())
    return replace(empty, lines=_read(table, chosen, seeds, done), stopped=stopped)


OPTIONS = {"epochs": "--epochs", "seed": "--seeds", "dataset": "--digits", "root": "--root"}
"""Keys that an option sets for every run of a table."""


def _refuse_taken_keys(changes: Sequence[str], table: PaperTable) -> None:
    """What an option or the table itself sets would win over key=value without a word."""
    varied = {_key(text) for number in table.numbers for text in number.recipe.split()[1:]}
    for change in changes:
        if (key := _key(change)) in OPTIONS:
            raise TakenKey(f"{change!r}: the option {OPTIONS[key]} says this for every run of the table")
        if key in varied:
            raise TakenKey(f"{change!r}: the table sets {key} itself, in some runs or in all; leave it out")


def _key(change: str) -> str:
    """lr of lr=1e-2 and of optim.lr=1e-2."""
    return change.partition("=")[0].strip().rpartition(".")[2]


def scaled(
    text: str, scale: Scale, seed: int = 0, epochs: int | None = None, changes: Sequence[str] = ()
) -> Recipe | None:
    """The recipe of "name key=value ..." at a scale; None if its network is too large for it."""
    name, *overrides = text.split()
    chosen = recipes.load(name, [*changes, *overrides])
    suffix = "".join(f"_{override.partition('=')[2]}" for override in overrides)
    suffix += "" if scale == "full" else "_quick"
    suffix += _epochs_suffix(scale, epochs) + _changes_suffix(changes)
    epochs = epochs or EPOCHS.get(scale)
    suffix += f"_seed{seed}" if seed else ""
    title = chosen.name.replace(chosen.data.dataset, "digits") if scale == "digits" else chosen.name
    chosen = replace(
        chosen,
        name=title + suffix,
        run=replace(chosen.run, seed=seed),
        optim=replace(chosen.optim, epochs=epochs or chosen.optim.epochs),
    )
    if scale == "full":
        return chosen
    if chosen.model.network in TOO_LARGE or chosen.data.dataset == "image_folder":
        return None
    if scale == "quick":
        return chosen
    model = replace(chosen.model, options={**chosen.model.options, "norm": "both"})
    data = replace(chosen.data, dataset="digits", pad=1, batch_size=64)
    return replace(chosen, data=data, model=model)


def _epochs_suffix(scale: Scale, epochs: int | None) -> str:
    """Tells names apart where the epochs are not those that the scale has anyway."""
    return "" if epochs in (None, EPOCHS.get(scale)) else f"_epochs{epochs}"


def _changes_suffix(changes: Sequence[str]) -> str:
    """image_size=16 as _image_size16; what a file's name should not have becomes a hyphen."""
    return "".join("_" + re.sub(r"[^\w.-]+", "-", change.replace("=", "", 1)) for change in changes)


Scaled = Callable[..., Recipe | None]
"""`scaled` at the scale of the table: (text, seed=0) -> the recipe."""


def _recipes(table: PaperTable, chosen: Scaled, seeds: int) -> list[Recipe]:
    texts = dict.fromkeys(number.recipe for number in table.numbers if number.recipe)
    found = [chosen(text, seed=seed) for text in texts for seed in range(seeds)]
    return [one for one in found if one is not None]


ELSEWHERE = {"data.root", "data.workers", "loss.teacher"}
"""Where images and teacher lie, and who reads them: another machine has other folders."""


def _trained(wanted: Recipe, folder: Path, table: PaperTable) -> Result:
    """A finished run of the recipe, wherever its images were; else what is missing."""
    for file in sorted(folder.glob("*/recipe.toml")):
        run = RunDirectory(file.parent)
        try:
            same = run.finished and set(runs.changed_keys(run.recipe(), wanted, WORK)) <= ELSEWHERE
            n_classes = run.facts().num_classes if same else 0
        except LatentbitError:  # of another version
            continue
        if same and n_classes != IMAGENET_CLASSES:
            return f"{run.path} was trained on {n_classes} classes, {table.images} has {IMAGENET_CLASSES}"
        if same:
            return run
    return f"no finished run in {folder}: --root DIR, the folder of {table.images}, trains it"


def _read(table: PaperTable, chosen: Scaled, seeds: int, done: dict[str, Result]) -> tuple[Line, ...]:
    errors: dict[Path, list[float | None]] = {}
    return tuple(_line(number, chosen, seeds, done, errors) for number in table.numbers)


def _line(
    number: Printed,
    chosen: Scaled,
    seeds: int,
    done: dict[str, Result],
    errors: dict[Path, list[float | None]],
) -> Line:
    values: list[float] = []
    used, notes = [], []
    for seed in range(seeds) if number.recipe else ():
        wanted = chosen(number.recipe, seed=seed)
        if wanted is None:
            notes.append("too large for this scale")
            break
        run = done.get(wanted.name)
        if isinstance(run, RunDirectory):
            value = _value(run, number.metric, errors)
            values += [] if value is None else [value]
            notes += [f"{run.path} has no {number.metric}"] if value is None else []
            used.append(str(run.path))
        else:
            notes.append(run or "not run yet")
    ours = statistics.fmean(values) if values else None
    spread = statistics.stdev(values) if len(values) > 1 else None
    return Line(number.row, number.column, ours, number.paper, spread, tuple(used), "; ".join(set(notes)))


def _value(run: RunDirectory, metric: str, errors: dict[Path, list[float | None]]) -> float | None:
    last = run.metrics()[-1]
    if metric == "error":
        return 100 * (1 - last[B.metric])
    if metric.startswith(("accuracy", "top5")):
        return 100 * last[metric] if metric in last else None
    if run.path not in errors:
        errors[run.path] = _layer_errors(run)
    found = errors[run.path]
    if metric == "average":
        known = [error for error in found if error is not None]
        return statistics.fmean(known) if known else None
    layer = int(metric.removeprefix("layer "))
    return found[layer] if layer < len(found) else None  # key=value may have chosen a smaller network


def _layer_errors(run: RunDirectory) -> list[float | None]:
    from latentbit.analyze import SAMPLES, open_run, reconstruction

    trained = open_run(run.path, "last")
    assert trained.views is not None
    found = reconstruction.errors(trained.views, trained.sample(SAMPLES))
    # Where Eq. 4 puts Y_l, and where errors grow with depth as the paper's do: behind BatchNorm and activation.
    return [error.activated for error in found.values()]


def _complexity() -> Reproduced:
    import torch

    from latentbit import models
    from latentbit.binarize import binarize_
    from latentbit.models import cost
    from latentbit.paper import cost as paper_cost

    lines = []
    for network in paper_cost.TABLE:
        with torch.device("meta"):
            model = models.create(network)
            binarize_(model)
            counted = cost.count(model, paper_cost.INPUT)
        compared = paper_cost.compare(network, counted)
        lines += [Line(one.quantity, network, float(one.ours), one.paper) for one in compared]
    return Reproduced(COMPLEXITY, "Inference cost of one 224 x 224 image", "full", tuple(lines))
