"""A run directory: everything one training leaves behind, each file whole or absent.

    recipe.toml  environment.json  data.json  metrics.jsonl  checkpoints/*  best.safetensors  last.safetensors  code/*

best and last hold the plain state dict of the binary network. With data.json, the facts of the data set, a run can
be copied to a machine that has no images, and packed there.
"""

import contextlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from latentbit import __version__, data, recipes
from latentbit.atomic import WriteError, atomic_write, remove_temporary
from latentbit.checkpoints import checkpoint
from latentbit.data import DataError, Dataset
from latentbit.errors import LatentbitError, LatentbitWarning
from latentbit.imports import CodeNotTrusted, in_file, require_trust
from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Recipe
from latentbit.recipes.build import build_model
from latentbit.recipes.recipe import code_named
from latentbit.runs import metrics_file, own_code
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.runs.environment import environment
from latentbit.views import TwoView

RUNS = Path("runs")
"""Where runs go unless told otherwise."""
WHICH = ("best", "last")


class RunError(LatentbitError):
    """A run directory that is missing, foreign, unfinished or already taken."""


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @staticmethod
    def create(
        chosen: Recipe, path: Path, facts: DatasetFacts | None = None, **environment_facts: object
    ) -> "RunDirectory":
        """A new run: its recipe, environment and data set's facts on disk before the first step."""
        require_free(path)
        run = RunDirectory(path)
        path.mkdir(parents=True, exist_ok=True)
        remove_temporary(path)  # of a start that was killed
        chosen, code = own_code.keep(chosen, path)
        made = environment() | environment_facts | ({"code": code} if code else {})
        run._write("environment.json", json.dumps(made, indent=2) + "\n")
        if facts is not None:
            run._write("data.json", facts.dumps())
        run._write_recipe(chosen)  # last, because it makes the folder a run
        return run

    def rewrite_recipe(self, recipe: Recipe) -> None:
        """Put a changed recipe in place of this run's; paths of its own code stay relative to the run."""
        for (section, key), name in code_named(recipe).items():
            if in_file(name):
                file, _, wanted = name.rpartition(":")
                short = {key: f"{Path(file).relative_to(self.path.absolute()).as_posix()}:{wanted}"}
                recipe = replace(recipe, **{section: replace(getattr(recipe, section), **short)})
        self._write_recipe(recipe)

    def _write_recipe(self, recipe: Recipe) -> None:
        # Without the path: a run is moved, copied and committed.
        header = (
            f"Recipe as run by latentbit {__version__}.\nAgain, in this folder: latentbit train ./recipe.toml"
        )
        self._write("recipe.toml", recipes.dumps(recipe, header))

    @staticmethod
    def open(path: Path) -> "RunDirectory":
        """An existing run."""
        if (path / "recipe.toml").is_file():
            return RunDirectory(path)
        if not path.exists():
            what = "does not exist"
        elif not path.is_dir():
            what = "is a file, not a run directory"
        elif is_free(path):
            what = f"is empty, so there is nothing to continue: start it with `latentbit train RECIPE --out {path}`"
            raise RunError(f"{path} {what}")
        else:
            what = "has no recipe.toml: not a run directory"
        raise RunError(f"{path} {what}; `ls runs` shows yours, `latentbit train RECIPE` starts one")

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    def recipe(self) -> Recipe:
        """The recipe as run."""
        return recipes.load(str(self.path / "recipe.toml"))

    def environment(self) -> dict[str, Any]:
        """What environment.json holds; empty if it is missing or damaged."""
        try:
            return dict(json.loads((self.path / "environment.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def changed_code(self) -> list[str]:
        """Files of the user's own that are not what they were when the run began."""
        return own_code.changed(self.path, self.environment().get("code", {}))

    def _warn_of_changed_code(self) -> None:
        if odd := self.changed_code():
            warnings.warn(
                f"{', '.join(odd)} of {self.path} changed since the run began: its numbers may not be those of the run",
                LatentbitWarning,
                stacklevel=3,
            )

    def metrics(self) -> list[dict[str, Any]]:
        """One entry per finished epoch; damaged lines do not count."""
        return metrics_file.read(self.path / "metrics.jsonl")[0]

    def log(self, entry: dict[str, Any]) -> str:
        """Add the line of one epoch; gives a notice if damaged lines had to be put aside, else nothing."""
        aside = metrics_file.add(self.path / "metrics.jsonl", entry)
        where = self.path / metrics_file.ASIDE
        return f"{aside} damaged lines of metrics.jsonl were moved to {where}" if aside else ""

    @property
    def finished(self) -> bool:
        entries = self.metrics()
        return bool(entries) and entries[-1]["epoch"] >= self.recipe().optim.epochs

    def chosen(self, which: str | None = None) -> str:
        """best or last; if neither is asked for, best where validation images chose it, else last."""
        return which or ("best" if self.recipe().data.val > 0 else "last")

    def epoch_in_words(self, which: str | None = None) -> str:
        """Which epoch the network is of, and what chose it: "epoch 12 of 15, best on 143 validation images"."""
        facts, total = checkpoint.read_facts(self.weights(which)), self.recipe().optim.epochs
        if self.chosen(which) == "last":
            return f"epoch {facts.get('epoch', '?')} of {total}, the last"
        on = facts.get("chosen_on", "the test images")
        doubt = ", so its accuracy there is too good" if on == "the test images" else ""
        return f"epoch {facts.get('epoch', '?')} of {total}, best on {on}{doubt}"

    def weights(self, which: str | None = None) -> Path:
        """best.safetensors or last.safetensors, if the run has it; see `chosen` for the default."""
        which = self.chosen(which)
        if which not in WHICH:
            raise RunError(f"a run keeps its best and its last network, not {which!r}")
        file = self.path / f"{which}.safetensors"
        if not file.is_file():
            raise RunError(
                f"{self.path} has no {file.name} yet: finish an epoch with `latentbit train --resume {self.path}`"
            )
        return file

    def dataset(self, device: torch.device | str = "cpu") -> Dataset:
        """The data set of the run, opened; refused if it is not the one that the run was trained on."""
        self._warn_of_changed_code()
        opened = data.open(self.recipe().data, device)
        facts = DatasetFacts.of(opened)
        self.check_data(facts)
        return opened

    def check_data(self, facts: DatasetFacts) -> None:
        """Compare a data set with the one the run began with; keep its facts if the run has none yet."""
        path = self.path / "data.json"
        if not path.is_file():
            self._write("data.json", facts.dumps())
            return
        stored = DatasetFacts.loads(path.read_text(encoding="utf-8"), str(path))
        if odd := stored.differences(facts):
            raise RunError(
                f"{self.path} was trained on another data set than {facts.name} is here: "
                f"{', '.join(odd)} differ (see {path}). Bring the data set back as it was, or train a new run"
            )

    def facts(self) -> DatasetFacts:
        """What the data set was. Reads data.json; opens the data set only for runs of 0.1.0, which lack it."""
        path = self.path / "data.json"
        if path.is_file():
            return DatasetFacts.loads(path.read_text(encoding="utf-8"), str(path))
        try:
            return DatasetFacts.of(self.dataset())
        except DataError as error:
            raise RunError(
                f"{self.path} has no data.json: latentbit 0.1.0 did not keep the facts of a data set, and the "
                f"data set is not here ({error}). Run `latentbit eval {self.path}` once where it is, then copy "
                "the run again"
            ) from None

    def network(self, which: str | None = None, device: torch.device | str = "cpu") -> nn.Module:
        """The trained network, in eval mode. Needs no images."""
        self._warn_of_changed_code()
        file, facts = self.weights(which), self.facts()
        model = build_model(self.recipe(), facts.num_classes, facts.in_channels)
        checkpoint.read_model(file, model)
        return model.to(device).eval()

    def untrained(self) -> nn.Module:
        """The network without values, on the meta device: for counting."""
        facts = self.facts()
        with torch.device("meta"):
            return build_model(self.recipe(), facts.num_classes, facts.in_channels)

    def views(self, which: str | None = None, device: torch.device | str = "cpu") -> TwoView | None:
        """The network with both its views; None without binary layers. The latent statistics are not set yet."""
        model = self.network(which, device)
        if not any(isinstance(module, BINARY_LAYERS) for module in model.modules()):
            return None
        return TwoView(model, collect_layers=True).eval()

    def _write(self, name: str, text: str) -> None:
        with atomic_write(self.path / name) as file:
            file.write(text.encode())


def usable(paths: Sequence[Path], which: str | None = None) -> tuple[list[Path], list[str]]:
    """Of several paths, those of runs with a network, and why each of the others is left out; one alone must be one."""
    found, skipped = [], []
    for path in paths:
        try:
            run = RunDirectory.open(path)
            run.weights(which)
            for name in code_named(run.recipe()).values():
                require_trust(name)
        except LatentbitError as error:
            if len(paths) == 1:
                raise
            if isinstance(error, CodeNotTrusted):
                skipped.append(f"skipping {path}: its recipe names code; if you trust it, add --trust-code")
                continue
            skipped.append(f"skipping {str(error).split(';')[0].split(': start it')[0]}")
        else:
            found.append(path)
    if not found:
        raise RunError(f"none of the {len(paths)} paths is a run with a network: {skipped[0]}")
    return found, skipped


def is_free(path: Path) -> bool:
    """True if a new run may begin here: nothing there, or only what a start that was killed has left."""
    if not path.exists():
        return True
    if not path.is_dir():
        raise RunError(f"{path} is a file: choose a folder for --out")
    left = {"environment.json", "data.json", own_code.FOLDER, ".lock", ".running.json"}
    return all(entry.name in left or entry.name.endswith(".tmp") for entry in path.iterdir())


def require_free(path: Path) -> None:
    """RunError unless a new run may begin here."""
    if not is_free(path):
        raise RunError(
            f"{path} is not empty: continue it with `latentbit train --resume {path}` or choose another --out"
        )


@contextlib.contextmanager
def writing(path: Path, whole: Path | None = None) -> Iterator[None]:
    """Around all that writes to a run: what the system refuses becomes a RunError that says what is safe.

    `whole` is the run to resume, if this is but a stage of it.
    """
    try:
        yield
    except (WriteError, OSError) as error:
        what = error.what if isinstance(error, WriteError) else _named(error)
        if not (path / "recipe.toml").is_file():
            raise RunError(
                f"{path} cannot hold a run: {what}. Nothing is lost; choose another --out"
            ) from error
        kept, _ = checkpoint.newest_whole(path / "checkpoints")
        safe = f"{kept} is whole, and so is every file there" if kept else "every file there is whole"
        raise RunError(
            f"{what}. {safe}; then go on with `latentbit train --resume {whole or path}`"
        ) from error


def _named(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def new_path(root: Path, name: str) -> Path:
    """runs/<name>, or runs/<name>-2, -3, ... where that is taken."""
    path, n = root / name, 1
    while not is_free(path):
        n += 1
        path = root / f"{name}-{n}"
    return path


def newest_path(root: Path, name: str) -> Path | None:
    """The last that new_path gave out."""
    taken = [path for path in root.glob(f"{name}*") if (path / "recipe.toml").is_file()]
    mine = [path for path in taken if path.name == name or path.name.removeprefix(f"{name}-").isdigit()]
    return max(mine, key=lambda path: (path / "recipe.toml").stat().st_mtime, default=None)


def weights_at(where: str) -> Path:
    """The weights meant by a run directory (see RunDirectory.chosen) or by a file."""
    path = Path(where).expanduser()
    return path if path.is_file() else RunDirectory.open(path).weights()
