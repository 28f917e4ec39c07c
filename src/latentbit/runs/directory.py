"""A run directory: everything one training leaves behind, each file whole or absent.

    recipe.toml  environment.json  metrics.jsonl  checkpoints/*.safetensors  best.safetensors  last.safetensors

metrics.jsonl has one line per finished epoch. best and last hold the plain state dict of the binary network.
"""

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from latentbit import __version__, recipes
from latentbit.atomic import atomic_write
from latentbit.errors import LatentbitError
from latentbit.recipes import Recipe


class RunError(LatentbitError):
    """A run directory that is missing, foreign or already taken."""


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @staticmethod
    def create(chosen: Recipe, path: Path) -> "RunDirectory":
        """A new run: its recipe and environment on disk before the first step."""
        if path.exists() and any(path.iterdir()):
            raise RunError(
                f"{path} is not empty: continue it with `latentbit train --resume {path}` or choose another --out"
            )
        run = RunDirectory(path)
        # Without the path: a run is moved, copied and committed.
        header = (
            f"Recipe as run by latentbit {__version__}.\nAgain, in this folder: latentbit train ./recipe.toml"
        )
        run._write(run.path / "recipe.toml", recipes.dumps(chosen, header))
        run._write(run.path / "environment.json", json.dumps(environment(), indent=2) + "\n")
        return run

    @staticmethod
    def open(path: Path) -> "RunDirectory":
        """An existing run."""
        if not (path / "recipe.toml").is_file():
            what = "has no recipe.toml: not a run directory" if path.is_dir() else "does not exist"
            raise RunError(f"{path} {what}; `ls runs` shows yours, `latentbit train RECIPE` starts one")
        return RunDirectory(path)

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

    def metrics(self) -> list[dict[str, Any]]:
        """One entry per finished epoch; a line cut short by a kill does not count."""
        try:
            text = (self.path / "metrics.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        entries = []
        for line in text.splitlines():
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return entries

    def log(self, entry: dict[str, Any]) -> None:
        """Add the line of one epoch; whatever an interrupted run had logged from there on is replaced."""
        entries = [old for old in self.metrics() if old["epoch"] < entry["epoch"]] + [entry]
        self._write(self.path / "metrics.jsonl", "".join(json.dumps(e) + "\n" for e in entries))

    @property
    def finished(self) -> bool:
        entries = self.metrics()
        return bool(entries) and entries[-1]["epoch"] >= self.recipe().optim.epochs

    def _write(self, path: Path, text: str) -> None:
        with atomic_write(path) as file:
            file.write(text.encode())


def new_path(root: Path, name: str) -> Path:
    """runs/<name>, or runs/<name>-2, -3, ... where that is taken."""
    path, n = root / name, 1
    while path.exists() and any(path.iterdir()):
        n += 1
        path = root / f"{name}-{n}"
    return path


def newest_path(root: Path, name: str) -> Path | None:
    """The last that new_path gave out."""
    taken = [path for path in root.glob(f"{name}*") if (path / "recipe.toml").is_file()]
    mine = [path for path in taken if path.name == name or path.name.removeprefix(f"{name}-").isdigit()]
    return max(mine, key=lambda path: (path / "recipe.toml").stat().st_mtime, default=None)


def environment() -> dict[str, Any]:
    """What a number from this run depends on beside the recipe."""
    return {
        "latentbit": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": __import__("numpy").__version__,
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _git_commit() -> str | None:
    """Of the source tree, if the package runs from one; '-dirty' where it was changed."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
