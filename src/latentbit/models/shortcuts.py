"""S, what a block adds to its convolution, where the map shrinks or channels grow; elsewhere it is x.

pool         2x2 max-pool, channels repeated: no weights, the paper's
conv         2x2 average, real-valued 1x1 convolution, BN: Bi-Real Net, ReActNet, AdaBin on ImageNet
conv_first   1x1 convolution, BN, 2x2 average: Si-BNN
subsample    every second pixel, channels padded with zeros, half on each side: IR-Net, RBNN, AdaBin on CIFAR
average      2x2 average, channels padded with zeros likewise: ReCU
"""

from collections import OrderedDict
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit.errors import LatentbitError

Shortcut = Literal["pool", "conv", "conv_first", "subsample", "average"]


class BadWidths(LatentbitError):
    """A shortcut without weights can only repeat channels or pad them."""


class Repeat(nn.Module):
    """Concatenate a tensor with itself along the channels, `times` in all."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x] * self.times, dim=1)

    def extra_repr(self) -> str:
        return str(self.times)


class ZeroChannels(nn.Module):
    """Channels of zeros in front of those of a map, and behind them."""

    def __init__(self, front: int, behind: int) -> None:
        super().__init__()
        self.front, self.behind = front, behind

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, 0, 0, self.front, self.behind))

    def extra_repr(self) -> str:
        return f"{self.front}, {self.behind}"


def create(before: int, width: int, stride: int, kind: Shortcut) -> nn.Module:
    """S of a block from `before` to `width` channels."""
    if kind not in get_args(Shortcut):
        raise LatentbitError(f"shortcut {kind!r}: must be one of {', '.join(get_args(Shortcut))}")
    if stride == 1 and before == width:
        return nn.Identity()
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    if stride > 1 and kind != "conv_first":
        layers["pool"] = _pool(stride, kind)
    if kind.startswith("conv"):
        layers["conv"] = nn.Conv2d(before, width, 1, bias=False)
        layers["norm"] = nn.BatchNorm2d(width)
        if stride > 1 and kind == "conv_first":
            layers["pool"] = _pool(stride, kind)
    elif kind == "pool":
        if width % before:
            raise BadWidths(f'widths {before} -> {width}: not a multiple, use shortcut="conv"')
        if width != before:
            layers["repeat"] = Repeat(width // before)
    else:
        if width < before:
            raise BadWidths(f'widths {before} -> {width}: zeros can only be added, use shortcut="conv"')
        if width != before:
            front = (width - before) // 2
            layers["zeros"] = ZeroChannels(front, width - before - front)
    return nn.Sequential(layers)


def _pool(stride: int, kind: Shortcut) -> nn.Module:
    # ceil_mode: on a map of odd side the last window is cut, which gives the ceil(side / 2) of the strided
    # convolution and changes nothing on even sides.
    if kind == "pool":
        return nn.MaxPool2d(stride, ceil_mode=True)
    if kind == "subsample":
        return nn.MaxPool2d(1, stride)
    return nn.AvgPool2d(stride, ceil_mode=True, count_include_pad=False)
