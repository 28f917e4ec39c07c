"""The paper's table of inference costs (ResNet-18 and 34 on 224 x 224 images), set beside our own count.

Its memory includes real 1x1 convolutions that its networks do not have, its FLOPs an unstated share of the
element-wise work; so a difference is printed with every number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from latentbit import models, runs
from latentbit.binarize import binarize_
from latentbit.imports import without_folder
from latentbit.models import cost
from latentbit.models.cost_tables import narrow_table

INPUT = (3, 224, 224)


@dataclass(frozen=True)
class PrintedCost:
    """One network's rows of the table."""

    float_mbit: float
    float_flops: float
    mbit: float
    ratio: float
    flops: float
    bops: float
    bireal_mbit: float
    """The row of Bi-Real Net, whose shortcuts are real 1x1 convolutions."""
    bireal_flops: float


TABLE = {
    "resnet18": PrintedCost(374.1, 1.826e9, 33.1, 11.30, 1.210e8, 1.676e9, 33.6, 1.393e8),
    "resnet34": PrintedCost(697.3, 3.667e9, 43.1, 16.17, 1.247e8, 3.526e9, 43.7, 1.408e8),
}


@dataclass(frozen=True)
class CostLine:
    """One quantity, as counted here and as printed there."""

    quantity: str
    ours: float
    paper: float

    @property
    def difference(self) -> float:
        return self.ours - self.paper


@dataclass(frozen=True)
class NamedCost:
    """A network of latentbit.models counted, and the paper's numbers where it has this network."""

    network: str
    input: tuple[int, ...]
    cost: cost.Cost
    beside: list[CostLine]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        paper = [asdict(line) | {"difference": line.difference} for line in self.beside]
        return {"network": self.network, "input": self.input, **self.cost.as_dict(), "paper": paper}


def count_named(
    network: str,
    shape: tuple[int, ...],
    classes: int | None = None,
    method: str | None = "sign",
    options: Mapping[str, Any] | None = None,
) -> NamedCost:
    """Count a network by its name for one image of `shape`; without a method all its layers stay real."""
    with torch.device("meta"):  # a count needs shapes only
        model = models.create(network, classes, shape[0], **(options or {}))
        if method is not None:
            binarize_(model, method)
    counted = cost.count(model, shape)
    in_paper = network in TABLE and shape == INPUT and classes in (None, 1000) and method is not None
    return NamedCost(network, shape, counted, compare(network, counted) if in_paper else [])


def count_run(path: Path) -> NamedCost:
    """Count the network of a run. Needs neither its weights nor its data set."""
    run = runs.open(path)
    shape = run.facts().input_shape
    return NamedCost(
        without_folder(run.recipe().model.network), shape, cost.count(run.untrained(), shape), []
    )


def compare(name: str, counted: cost.Cost) -> list[CostLine]:
    """The paper's numbers for the network called `name` beside those of `counted`."""
    printed = TABLE[name]
    with torch.device("meta"):
        standard = cost.count(models.create(f"{name}_standard"), INPUT)
        bireal = models.create(name, shortcut="conv", norm="after")  # Bi-Real Net has no BN before its sign
        binarize_(bireal)
        with_conv = cost.count(bireal, INPUT)
    total = counted.total()
    return [
        CostLine("real standard ResNet, Mbit", standard.mbit, printed.float_mbit),
        CostLine("real standard ResNet, FLOPs", standard.total().macs, printed.float_flops),
        CostLine("memory, Mbit", counted.mbit, printed.mbit),
        CostLine("standard / binary memory", standard.mbit / counted.mbit, printed.ratio),
        CostLine("real FLOPs, convs and linears", total.macs, printed.flops),
        CostLine("real FLOPs and element-wise", total.macs + total.elementwise, printed.flops),
        CostLine("BOPs", total.bops, printed.bops),
        CostLine("with real 1x1 shortcuts, Mbit", with_conv.mbit, printed.bireal_mbit),
        CostLine("with real 1x1 shortcuts, FLOPs", with_conv.total().macs, printed.bireal_flops),
    ]


def paper_table(lines: Sequence[CostLine]) -> Table:
    """For the terminal."""
    table = narrow_table("beside the paper's table", "", "ours", "paper", "difference")
    for line in lines:
        style = ".4g" if line.paper > 1e6 else ".2f"
        table.add_row(line.quantity, *(f"{n:{style}}" for n in (line.ours, line.paper, line.difference)))
    return table
