"""Every data set by its name: listing them, filling the cache, checking what is in it."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from latentbit.data import cifar, folders, image_folder, shards
from latentbit.data.cifar import Cifar
from latentbit.data.dataset import DataError
from latentbit.data.pictures import Stored


@dataclass(frozen=True)
class Finding:
    """One line of a check, and whether it is good news."""

    line: str
    sound: bool = True


def downloads() -> dict[str, Cifar]:
    """The data sets that are downloaded."""
    return {"cifar10": cifar.CIFAR10, "cifar100": cifar.CIFAR100}


def download_of(name: str) -> Cifar:
    if name == "digits":
        raise DataError("digits come with scikit-learn: there is nothing to download or check")
    if name not in downloads():
        raise DataError(f"no data set {name!r} to download; there are {', '.join(downloads())}")
    return downloads()[name]


def facts() -> list[dict[str, Any]]:
    """Every data set, its size, and where it is or how to get it."""
    found: list[dict[str, Any]] = [
        {
            "name": "digits",
            "classes": 10,
            "train": 1437,
            "test": 360,
            "image": "1x8x8",
            "where": "embedded",
            "here": True,
        }
    ]
    for name, kind in downloads().items():
        here = all(kind.path(split).exists() for split in kind.n_images)
        where = str(kind.folder) if here else f"latentbit data get {name}"
        counts = {split: kind.n_images[split] for split in ("train", "test")}
        found.append(
            {
                "name": name,
                "classes": len(kind.classes),
                **counts,
                "image": "3x32x32",
                "where": where,
                "here": here,
            }
        )
    unknown = {"classes": None, "train": None, "test": None}
    folder = {"image": "3x224x224", "where": "root=DIR, with train/ and val/", "here": None}
    tars = {"image": "3x224x224", "where": "root=DIR; latentbit data shard makes them", "here": None}
    own = {"image": "any", "where": "a function of yours: docs/extending.md", "here": None}
    return [
        *found,
        {"name": "image_folder", **unknown, **folder},
        {"name": "shards", **unknown, **tars},
        {"name": "my_file.py:my_data", **unknown, **own},
    ]


def listing() -> Table:
    """The facts for a terminal."""
    table = Table(box=None, pad_edge=False)
    titles = ("name", "classes", "train", "test", "image", "where")
    for title in titles:
        table.add_column(title)
    for one in facts():
        table.add_row(*("" if one[title] is None else str(one[title]) for title in titles))
    return table


def get(name: str, archive: Path | None = None, force: bool = False) -> Cifar:
    """Fill the cache with a data set unless it is there, whole; progress goes to stderr."""
    kind = download_of(name)
    if archive is None and not force and not cifar.check(kind):
        return kind
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, visible=False)

        def report(file: str, done: int, total: int) -> None:
            progress.update(task, description=file, completed=done, total=total or None, visible=True)

        def say(line: str) -> None:
            progress.console.print(line, highlight=False, markup=False, soft_wrap=True)

        cifar.get(kind, report, say, archive)
    return kind


def check(name: str | None) -> Iterator[Finding]:
    """What is right and wrong with a data set, a folder of images or shards, or everything in the cache."""
    if name is None:
        for one, kind in downloads().items():
            if any(kind.path(split).exists() for split in kind.n_images):
                yield from _check_cache(kind)
            else:
                yield Finding(f"{one}: not downloaded")
    elif name not in downloads() and Path(name).is_dir():
        found = next(Path(name).rglob("*.tar"), None) or Path(name, shards.CONTENTS).exists()
        yield from _check_shards(Path(name)) if found else _check_folder(Path(name))
    else:
        yield from _check_cache(download_of(name))


def _check_cache(kind: Cifar) -> Iterator[Finding]:
    problems = cifar.check(kind)
    for problem in problems:
        yield Finding(f"{kind.name}: {problem}", sound=False)
    if not problems:
        yield Finding(f"{kind.name}: OK, {sum(kind.n_images.values())} images in {kind.folder}")


def _check_folder(root: Path) -> Iterator[Finding]:
    train, test, classes = folders.find(root)
    yield from _decode_all(str(root), train, test, classes)


def _check_shards(root: Path) -> Iterator[Finding]:
    train, test, classes = shards.find(root, broken_limit=sys.maxsize)
    for split in (train, test):
        yield from (Finding(line, sound=False) for line in shards.damaged(split))
    yield from _decode_all(f"{root}: {len(train.tars) + len(test.tars)} shards", train, test, classes)


def _decode_all(what: str, train: Stored, test: Stored, classes: tuple[str, ...]) -> Iterator[Finding]:
    n_problems = 0
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("decoding", total=len(train) + len(test))
        for split in (train, test):
            for n_images, lines in image_folder.unreadable(split, os.cpu_count() or 1):
                progress.advance(task, n_images)
                n_problems += len(lines)
                yield from (Finding(line, sound=False) for line in lines)
    verdict = f"{n_problems} cannot be decoded" if n_problems else "all can be decoded"
    counts = f"{len(classes)} classes, {len(train)} train and {len(test)} test images"
    yield Finding(f"{what}: {counts}, {verdict}", sound=not n_problems)
