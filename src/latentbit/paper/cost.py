"""The paper's table of inference costs (ResNet-18 and 34 on 224 x 224 images), set beside our own count.

Its memory includes real 1x1 convolutions that its networks do not have, its FLOPs an unstated share of the
element-wise work; so a difference is printed with every number.
"""

from dataclasses import dataclass

import torch

from latentbit import models
from latentbit.binarize import binarize_
from latentbit.models import cost

INPUT = (3, 224, 224)


@dataclass(frozen=True)
class Printed:
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
    "resnet18": Printed(374.1, 1.826e9, 33.1, 11.30, 1.210e8, 1.676e9, 33.6, 1.393e8),
    "resnet34": Printed(697.3, 3.667e9, 43.1, 16.17, 1.247e8, 3.526e9, 43.7, 1.408e8),
}


@dataclass(frozen=True)
class Line:
    """One quantity, as counted here and as printed there."""

    quantity: str
    ours: float
    paper: float

    @property
    def difference(self) -> float:
        return self.ours - self.paper


def compare(name: str, counted: cost.Cost) -> list[Line]:
    """The paper's numbers for the network called `name` beside those of `counted`."""
    printed = TABLE[name]
    with torch.device("meta"):
        standard = cost.count(models.create(f"{name}_standard"), INPUT)
        bireal = models.create(name, shortcut="conv")
        binarize_(bireal)
        with_conv = cost.count(bireal, INPUT)
    total = counted.total()
    return [
        Line("32-bit standard ResNet, Mbit", standard.mbit, printed.float_mbit),
        Line("32-bit standard ResNet, FLOPs", standard.total().macs, printed.float_flops),
        Line("memory, Mbit", counted.mbit, printed.mbit),
        Line("standard / binary memory", standard.mbit / counted.mbit, printed.ratio),
        Line("real FLOPs, convs and linears", total.macs, printed.flops),
        Line("real FLOPs and element-wise", total.macs + total.elementwise, printed.flops),
        Line("BOPs", total.bops, printed.bops),
        Line("with real 1x1 shortcuts, Mbit", with_conv.mbit, printed.bireal_mbit),
        Line("with real 1x1 shortcuts, FLOPs", with_conv.total().macs, printed.bireal_flops),
    ]
