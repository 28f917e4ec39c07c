"""Which images a folder holds, and of which class: ImageNet's layout, or any tree of one folder per class."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentbit import images
from latentbit.data.dataset import DataError

TEST_NAMES = ("val", "validation", "test")
VAL_LABELS = "LOC_val_solution.csv"
HELD_OUT = 5


class Paths(Sequence[str]):
    """Many paths in one block of memory.

    A million strings are a million objects. A worker that only looks at one of them writes to its count of users,
    and so gets a copy of its page: over an epoch, of all of them.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        encoded = [os.fsencode(path) for path in paths]
        self._ends = np.cumsum([0, *map(len, encoded)])
        self._text = b"".join(encoded)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return os.fsdecode(self._text[self._ends[index] : self._ends[index + 1]])


@dataclass(frozen=True)
class Files:
    """Paths of images and their classes."""

    paths: Paths
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, index: int) -> str:
        """The path."""
        return self.paths[index]

    def content(self, index: int) -> bytes:
        """The bytes of the file."""
        path = self.paths[index]
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise images.ImageError(
                f"{path} cannot be read ({error.strerror}): replace or remove it"
            ) from None


def find(root: Path) -> tuple[Files, Files, tuple[str, ...]]:
    """Training images, test images and the names of the classes.

    With train/ and val/ (or validation/, test/) these are the splits; with val/ alone there is nothing to train
    on; without either, every fifth image of each class, by name, is for the test.
    """
    if not root.is_dir():
        raise DataError(f"data.root = {str(root)!r} is not a folder: set root=DIR to the folder of images")
    test = next((root / name for name in TEST_NAMES if (root / name).is_dir()), None)
    if (root / "train").is_dir():
        if test is None:
            raise DataError(f"{root} has train/ but none of {', '.join(f'{n}/' for n in TEST_NAMES)}")
        train = _classes(root / "train")
        return _split(train, train), _split(_test_classes(test), train), tuple(train)
    if test is not None:
        only = _test_classes(test)
        return Files(Paths(()), np.zeros(0, np.int64)), _split(only, only), tuple(only)
    tree = _classes(root)
    kept = {c: [p for i, p in enumerate(files) if i % HELD_OUT != HELD_OUT - 1] for c, files in tree.items()}
    held = {c: files[HELD_OUT - 1 :: HELD_OUT] for c, files in tree.items()}
    return _split(kept, tree), _split(held, tree), tuple(tree)


def _split(found: dict[str, list[str]], classes: dict[str, list[str]]) -> Files:
    """The files of `found`, labelled by the place of their class in `classes`."""
    number = {name: i for i, name in enumerate(classes)}
    if strangers := sorted(set(found) - set(number)):
        raise DataError(
            f"the test set has classes that the training set does not have: {', '.join(strangers[:5])}"
        )
    paths = [path for files in found.values() for path in files]
    labels = [number[name] for name, files in found.items() for _ in files]
    return Files(Paths(paths), np.array(labels, np.int64))


def _classes(folder: Path) -> dict[str, list[str]]:
    """Images at any depth under each folder, classes and files sorted by name."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] != ".")
    if len(names) < 2:
        raise DataError(f"{folder} needs a folder for each class, at least two; it has {len(names)}")
    found = {name: images.find(folder / name) for name in names}
    if empty := [name for name, files in found.items() if not files]:
        raise DataError(f"{folder}: class folders without images: {', '.join(empty[:5])}")
    return found


def _test_classes(folder: Path) -> dict[str, list[str]]:
    """As `_classes`, and ImageNet's validation images as they are handed out: flat, beside a table."""
    if any(entry.is_dir() for entry in os.scandir(folder)):
        return _classes(folder)
    table = next((p for p in (folder / VAL_LABELS, folder.parent / VAL_LABELS) if p.is_file()), None)
    if table is None:
        raise DataError(
            f"{folder} has no class folders: sort its images into one folder per class, "
            f"or put ImageNet's {VAL_LABELS} beside it"
        )
    found: dict[str, list[str]] = {}
    here = {Path(path).stem: path for path in images.find(folder)}
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            path = here.pop(row["ImageId"], None)
            if path is None:
                raise DataError(f"{table} lists {row['ImageId']}, which is not in {folder}")
            found.setdefault(row["PredictionString"].split()[0], []).append(path)
    if here:
        raise DataError(f"{table} does not list {min(here.values())}")
    return {name: sorted(found[name]) for name in sorted(found)}
