"""Trained networks that come with the package.

    net = latentbit.engine.load("zoo:digits")         # wherever a .lbit file is asked for, zoo:NAME will do
    print(latentbit.zoo.card("digits"))               # what it was trained on and how, how good, large and fast it is

A network is two files of this folder, NAME.lbit and NAME.json, its card. `packaging/zoo.py` makes both from runs.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latentbit.errors import LatentbitError
from latentbit.score import Score

PREFIX = "zoo:"
FOLDER = Path(__file__).parent


class ZooError(LatentbitError):
    """A network that does not come with the package."""


@dataclass(frozen=True)
class Card:
    """What one should know of a network before using it. Accuracies are those of all test images."""

    name: str
    summary: str
    """What it does, in a sentence."""
    data: str
    """What it was trained and tested on, and where that comes from."""
    licence: str
    train: str
    """The command that trains it again."""
    seeds: tuple[int, ...]
    """Of the runs; the file is the first one's, whatever its accuracy."""
    accuracies: tuple[float, ...]
    """Of the runs, each after its last epoch."""
    mean: float
    half: float | None
    """Half the 95 % interval of the mean over seeds; none for a single one."""
    correct: int
    """Of the file, run by the engine."""
    total: int
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Images of class i (row) that the file takes for class j (column)."""
    file_bytes: int
    fp32_bytes: int
    speed: str
    """With the CPU on which it was measured."""
    sha256: str

    @property
    def score(self) -> Score:
        """Of the file, run by the engine."""
        return Score(self.correct, self.total)

    def __str__(self) -> str:
        interval = "" if self.half is None else f" +- {self.half:.2%}"
        several = f"mean of {len(self.seeds)} seeds {self.mean:.2%}{interval} (95 %)"
        lines = {
            "what": self.summary,
            "data": self.data,
            "accuracy": f"{self.score} on the test images",
            "seeds": several if len(self.seeds) > 1 else "one: how much seeds differ was not measured",
            "size": f"{self.file_bytes:,} bytes; {self.fp32_bytes:,} in FP32",
            "speed": self.speed,
            "licence": self.licence,
            "train": self.train,
        }
        width = max(map(len, (*self.classes, "taken for")))
        cells = max(len(str(max(map(max, self.confusion)))), 4) + 1
        heading = "".join(f"{name[: cells - 1]:>{cells}}" for name in self.classes)
        rows = [
            f"{name:{width}}" + "".join(f"{n:{cells}}" for n in row)
            for name, row in zip(self.classes, self.confusion, strict=True)
        ]
        table = [f"{'taken for':{width}}{heading}", *rows]
        return "\n".join([self.name, *(f"  {key:9} {text}" for key, text in lines.items()), "", *table])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"accuracy": self.score.accuracy, "interval": self.score.interval()}


def names() -> list[str]:
    """Every network that comes with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.lbit"))


def file(name: str) -> Path:
    """The packed file of a network."""
    if name not in names():
        raise ZooError(f"zoo:{name}: no such network comes with latentbit; there are {', '.join(names())}")
    return FOLDER / f"{name}.lbit"


def card(name: str) -> Card:
    """What is known of a network."""
    stored = json.loads(file(name).with_suffix(".json").read_text(encoding="utf-8"))
    lists = {key: tuple(value) for key, value in stored.items() if isinstance(value, list)}
    lists["confusion"] = tuple(map(tuple, stored["confusion"]))
    return Card(**(stored | lists))


def is_name(path: str | os.PathLike[str]) -> bool:
    """Whether it reads zoo:NAME, which is no path."""
    return os.fspath(path).startswith(PREFIX)


def located(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file of zoo:NAME; any other path as it is."""
    return file(os.fspath(path).removeprefix(PREFIX)) if is_name(path) else path
