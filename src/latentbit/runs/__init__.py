"""What a run leaves on the disk, and how to come by it.

run = runs.open(path)            recipe, metrics, network, both views; the data set only when images are asked for
runs.obtain(recipe, train, ...)  finds a finished run, continues one that stopped, or trains
"""

from pathlib import Path

from latentbit.runs.directory import (
    RUNS,
    RunDirectory,
    RunError,
    new_path,
    newest_path,
    require_free,
    usable,
    weights_at,
    writing,
)
from latentbit.runs.extend import extend
from latentbit.runs.lock import RunIsBusy, RunLock
from latentbit.runs.obtain import Place, changed_keys, obtain, place

__all__ = [
    "RUNS",
    "Place",
    "RunDirectory",
    "RunError",
    "RunIsBusy",
    "RunLock",
    "changed_keys",
    "extend",
    "new_path",
    "newest_path",
    "obtain",
    "open",
    "place",
    "require_free",
    "usable",
    "weights_at",
    "writing",
]


def open(path: Path | str) -> RunDirectory:
    """An existing run. Nothing but its own files is read until images are asked for."""
    return RunDirectory.open(Path(path))
