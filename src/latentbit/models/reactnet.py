"""ReActNet-A: MobileNet V1 without depthwise convolutions, a skip around each of its binary 3x3 and 1x1 convolutions.

    y = RPReLU( BN(conv3x3(x)) + P(x) ),  P a 2x2 average where the map shrinks, else x
    z = RPReLU( BN(conv1x1(y)) + [y] ),   [y] = y beside y where channels double, else y

Trained with method "reactnet", whose shift per channel in front of the sign is the other half of it.

Source: Liu et al., "ReActNet", 2020, and its release. Confidence: high.
Exact: layers, widths, strides, activations; 4.82e9 BOPs, 0.12e8 real multiply-adds.
Differs: the two 1x1 convolutions that the release concatenates where channels double are one of twice the width: the
    same numbers. Networks B and C of the paper, with groups, are left out.
Packs: yes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from latentbit.models.activations import RPReLU
from latentbit.models.registry import network
from latentbit.models.shortcuts import BadWidths, Repeat
from latentbit.models.staged import Staged

WIDTHS = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)


class Block(nn.Module):
    """A 3x3 convolution, which may halve the map, and a 1x1 convolution, which may double the channels."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv3 = nn.Conv2d(before, before, 3, stride, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(before)
        # ceil_mode: as many windows as the convolution has on maps of odd side.
        pool = nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)
        self.pool = pool if stride > 1 else nn.Identity()
        self.act3 = RPReLU(before)
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.repeat = Repeat(width // before) if width > before else nn.Identity()
        self.act1 = RPReLU(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act3(self.norm3(self.conv3(x)) + self.pool(x))
        return self.act1(self.norm1(self.conv1(y)) + self.repeat(y))


def _stages(widths: Sequence[int]) -> list[nn.Sequential]:
    """One block per width but the first. Where channels double, but for the first time, maps halve: a stage begins."""
    blocks: list[list[Block]] = [[]]
    for i, (before, width) in enumerate(pairwise(widths)):
        if width % before:
            raise BadWidths(f"widths {before} -> {width}: a block keeps its channels or repeats them")
        halves = i > 0 and width > before
        if halves:
            blocks.append([])
        blocks[-1].append(Block(before, width, 2 if halves else 1))
    return [nn.Sequential(*stage) for stage in blocks]


@network
def reactnet_a(num_classes: int = 1000, in_channels: int = 3, widths: Sequence[int] = WIDTHS) -> Staged:
    """26 binary convolutions, 28.3 M binary weights. The stem is a real 3x3 convolution of stride 2."""
    conv = nn.Conv2d(in_channels, widths[0], 3, stride=2, padding=1, bias=False)
    stem = nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(widths[0])))
    return Staged(stem, _stages(widths), widths[-1], num_classes)
