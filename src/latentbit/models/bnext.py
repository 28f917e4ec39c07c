"""BNext: MobileNet's layout again, with gates that see input and output of a binary convolution mixed.

    c(x) = PReLU(BN(conv(x))),   g = sigmoid( F2 relu( F1 mean of s P(x) + (1 - s) c(x) ) ) c(x),  s learned per channel
    adding block:       y = BN(g) + P(x);   multiplying block: r = P(PReLU(x)),  y = BN(g r) + r
    then a 1x1 convolution in an adding block; where channels double two of them, concatenated

P is a 2x2 average where the map shrinks, else x. 3x3 convolutions stand in adding and multiplying blocks by turns.

Source: Guo et al., "Join the High Accuracy Club on ImageNet with a Binary Neural Network Ticket", 2022, and its
    release (src/bnext.py). Confidence: high.
Exact: layers, widths and order of blocks of the four sizes, gates, s kept within [0, 1].
Differs: its rule for weights (clamp(W / T), T falling to 0) and the weighing of two teachers are left out; method
    "reactnet" has its shift in front of the sign. The stem has stride 1 for other data than ImageNet there: here it
    is an option.
Packs: yes.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from latentbit.models.gates import Gate
from latentbit.models.registry import initialise_, network
from latentbit.models.shortcuts import BadWidths


class Unit(nn.Module):
    """One binary convolution that keeps its channels, with its gate and its skip."""

    def __init__(self, channels: int, kernel: int, stride: int, *, multiply: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.act = nn.PReLU(channels)
        # ceil_mode: as many windows as the convolution has on maps of odd side.
        pool = nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)
        self.pool = pool if stride > 1 else nn.Identity()
        self.gate = Gate(channels, channels, nn.Sigmoid(), bias=True)
        self.share = nn.Parameter(torch.full((channels, 1, 1), 0.5))
        self.residual_act = nn.PReLU(channels) if multiply else None
        self.last_norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.norm(self.conv(x)))
        if self.training:
            self.share.data.clamp_(0, 1)
        small = self.pool(x)
        y = y * self.gate(self.share * small + (1 - self.share) * y)
        if self.residual_act is None:
            return self.last_norm(y) + small
        residual = self.pool(self.residual_act(x))
        return self.last_norm(y * residual) + residual


class Block(nn.Module):
    """A 3x3 unit, which may halve the map, and 1x1 units, two of which double the channels."""

    def __init__(self, before: int, width: int, stride: int, *, multiply: bool) -> None:
        super().__init__()
        if width not in (before, 2 * before):
            raise BadWidths(f"widths {before} -> {width}: a block keeps its channels or doubles them")
        self.spatial = Unit(before, 3, stride, multiply=multiply)
        self.points = nn.ModuleList(Unit(before, 1, 1) for _ in range(width // before))

    def forward(self, x: Tensor) -> Tensor:
        y = self.spatial(x)
        parts = [point(y) for point in self.points]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


class BNext(nn.Module):
    """3x3 stem, one block per further width; where channels double, but for the first time, maps halve."""

    keep_real = ("*.gate.*",)
    """Names that stay real when the network is made binary."""

    def __init__(self, widths: Sequence[int], num_classes: int, in_channels: int, stem_stride: int) -> None:
        super().__init__()
        conv = nn.Conv2d(in_channels, widths[0], 3, stem_stride, padding=1, bias=False)
        self.stem = nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(widths[0])))
        blocks, ends = [], []
        for i, (before, width) in enumerate(zip(widths, widths[1:], strict=False)):
            shrinks = i > 0 and width > before
            if shrinks:
                ends.append(i - 1)
            blocks.append(Block(before, width, 2 if shrinks else 1, multiply=i % 2 == 1))
        self.blocks = nn.Sequential(*blocks)
        self.stage_names = tuple(f"blocks.{i}" for i in (*ends, len(blocks) - 1))
        self.act = nn.PReLU(widths[-1])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(widths[-1], num_classes)
        initialise_(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the last block's map (N, D, h, w)."""
        return self.act(self.blocks(self.stem(x)))

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.flatten(self.pool(features)))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


def _widths(first: int, depths: Sequence[int]) -> list[int]:
    """The stem, one block of twice its channels, then stages that each double them."""
    return [first, 2 * first, *(first * 2 ** (i + 2) for i, depth in enumerate(depths) for _ in range(depth))]


@network
def bnext_tiny(
    num_classes: int = 1000,
    in_channels: int = 3,
    widths: Sequence[int] = tuple(_widths(32, (2, 2, 6, 2))),
    stem_stride: int = 2,
) -> BNext:
    """31 binary convolutions in the layout of ReActNet-A, 28.3 M binary weights."""
    return BNext(widths, num_classes, in_channels, stem_stride)


@network
def bnext_small(num_classes: int = 1000, in_channels: int = 3, stem_stride: int = 2) -> BNext:
    """As tiny, half as wide again."""
    return BNext(_widths(48, (2, 2, 6, 2)), num_classes, in_channels, stem_stride)


@network
def bnext_middle(num_classes: int = 1000, in_channels: int = 3, stem_stride: int = 2) -> BNext:
    """As small, with more blocks."""
    return BNext(_widths(48, (4, 4, 8, 4)), num_classes, in_channels, stem_stride)


@network
def bnext_large(num_classes: int = 1000, in_channels: int = 3, stem_stride: int = 2) -> BNext:
    """Twice as wide as tiny, with more blocks."""
    return BNext(_widths(64, (4, 4, 16, 4)), num_classes, in_channels, stem_stride)
