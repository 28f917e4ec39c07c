"""PokeBNN: ResNet-50 of binary convolutions, each with a skip of its own, an activation of two slopes and a gate.

    y = BN( D( BN(conv(x)) + R(x) + [R(b)] ) G(x) ),  G = hard sigmoid( F2 relu( F1 mean of x ) ),  b what a
    bottleneck begins with
    D(v) = slope (v - a) - c, slope by the sign of v - a

R fits x or b to the shape of y: too many channels are averaged in groups, missing ones are zeros for x, repeats for b;
a 3x3 average halves the map. [R(b)] stands in the third convolution of a bottleneck only.

Source: Zhang et al., "PokeBNN: A Binary Pursuit of Lightweight Accuracy", 2022, and its release (aqt). Confidence:
    high on the blocks, medium on the 32 channels of the stem's first convolution, which are from memory.
Exact: blocks, layout, gates, skips, activations, gamma of the last BN in a bottleneck from 0.
Differs: its 8-bit first and last layers and 4-bit gates are real here; maps are padded by 1 on both sides where they
    shrink, there at the far end only. Its rule for binary layers (a bound of 3 on the gradient) is left out.
Packs: yes.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit.models.activations import DPReLU
from latentbit.models.gates import Gate
from latentbit.models.registry import network
from latentbit.models.shortcuts import BadWidths, Repeat, ZeroChannels
from latentbit.models.staged import Staged


class AverageChannels(nn.Module):
    """Means of `times` neighbouring channels."""

    def __init__(self, before: int, times: int) -> None:
        super().__init__()
        self.groups = before // times
        self.shares = nn.Buffer(torch.full((self.groups, times, 1, 1), 1 / times), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.shares, groups=self.groups)


def fit(before: int, width: int, stride: int, *, zeros: bool) -> nn.Sequential:
    """R, from `before` to `width` channels and to the map of a convolution with this stride."""
    if max(before, width) % min(before, width):
        raise BadWidths(f"widths {before} -> {width}: one must be a multiple of the other")
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    if before > width:
        layers["average"] = AverageChannels(before, before // width)
    elif before < width and zeros:
        layers["zeros"] = ZeroChannels(0, width - before)
    elif before < width:
        layers["repeat"] = Repeat(width // before)
    if stride > 1:
        layers["pool"] = nn.AvgPool2d(3, stride, padding=1)
    return nn.Sequential(layers)


class PokeConv(nn.Module):
    """One binary convolution; `block` is (channels, stride) of what the bottleneck began with, for its last one."""

    def __init__(
        self, before: int, width: int, kernel: int, stride: int, block: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, width, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.skip = fit(before, width, stride, zeros=True)
        self.long_skip = fit(block[0], width, block[1], zeros=False) if block else None
        self.act = DPReLU(width)
        self.gate = Gate(before, width, nn.Hardsigmoid(), bias=True)
        self.last_norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor, began: Tensor) -> Tensor:
        y = self.norm(self.conv(x)) + self.skip(x)
        if self.long_skip is not None:
            y = y + self.long_skip(began)
        return self.last_norm(self.act(y) * self.gate(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 to four times the channels."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = PokeConv(before, width, 1, 1)
        self.second = PokeConv(width, width, 3, stride)
        self.third = PokeConv(width, 4 * width, 1, 1, block=(before, stride))

    def forward(self, x: Tensor) -> Tensor:
        return self.third(self.second(self.first(x, x), x), x)


class PokeBNN(Staged):
    """4x4 stem of stride 4 and a grouped 3x3 convolution, four stages of bottlenecks, global average, classifier."""

    keep_real = ("stem.*", "*.gate.*")
    """Names that stay real when the network is made binary."""

    def __init__(
        self, widths: Sequence[int], depths: Sequence[int], num_classes: int, in_channels: int, stem: int
    ) -> None:
        layers = nn.Sequential(
            OrderedDict(
                conv=nn.Conv2d(in_channels, stem, 4, stride=4, bias=False),
                norm=nn.BatchNorm2d(stem),
                act=DPReLU(stem),
                grouped=nn.Conv2d(stem, 2 * stem, 3, padding=1, groups=stem, bias=False),
                grouped_norm=nn.BatchNorm2d(2 * stem),
                grouped_act=DPReLU(2 * stem),
            )
        )
        stages, before = [], 2 * stem
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            first = Bottleneck(before, width, 1 if i == 0 else 2)
            stages.append(nn.Sequential(first, *(Bottleneck(4 * width, width, 1) for _ in range(depth - 1))))
            before = 4 * width
        super().__init__(layers, stages, before, num_classes)
        for module in self.modules():
            if isinstance(module, Bottleneck):
                nn.init.zeros_(module.third.norm.weight)


@network
def pokebnn(
    num_classes: int = 1000,
    in_channels: int = 3,
    widths: Sequence[int] = (64, 128, 256, 512),
    depths: Sequence[int] = (3, 4, 6, 3),
    stem: int = 32,
) -> PokeBNN:
    """48 binary convolutions; the paper's sizes 0.5 to 2 are multiples of these widths."""
    return PokeBNN(widths, depths, num_classes, in_channels, stem)
