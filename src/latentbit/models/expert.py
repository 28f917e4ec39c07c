"""Expert binary network: each convolution has several sets of filters, and every image takes one of them.

    z = BN(x),   e = argmax sigmoid(F mean of z),   y = PReLU( conv_e(z) G(z) ) + S(x)

The choice learns as if it were the sigmoids themselves. G is the gate of Real-to-Binary, S its shortcut. Trained in
stages, with one expert first: `experts=1` begins them.

Source: Bulat et al., "High-Capacity Expert Binary Networks", 2021, and its release. Confidence: high on the layer, low
    on the grown layouts (widths, groups, depths) of its tables, which are not in the release.
Exact: choice, gate, block and shortcuts of the release, in ResNet-18's layout with 4 experts.
Differs: all experts are computed and one is kept: the same outputs, but 4 times the BOPs that the paper counts, and the
    choice has the gradient of outputs, where the release has that of filters. Its 1x1 shortcuts are experts too; here
    they are real.
Packs: no, the largest of several numbers is taken per image, which no op of the format does.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from latentbit.models import shortcuts
from latentbit.models.gates import Gate
from latentbit.models.registry import network
from latentbit.models.resnet import IMAGENET_WIDTHS, imagenet_stem
from latentbit.models.staged import Staged, stages


class ExpertConv(nn.Module):
    """A 3x3 convolution whose filters the mean of its input chooses."""

    def __init__(self, before: int, width: int, stride: int, experts: int) -> None:
        super().__init__()
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.choose = nn.Conv2d(before, experts, 1)
        self.experts = nn.ModuleList(
            nn.Conv2d(before, width, 3, stride, padding=1, bias=False) for _ in range(experts)
        )

    def forward(self, z: Tensor) -> Tensor:
        scores = torch.sigmoid(self.choose(self.mean(z)))
        chosen = torch.zeros_like(scores).scatter(1, scores.argmax(1, keepdim=True), 1.0)
        chosen = chosen + scores - scores.detach()  # one 1, with the gradient of the scores
        return sum(chosen[:, i : i + 1] * conv(z) for i, conv in enumerate(self.experts))


class Block(nn.Module):
    """One convolution of experts with its gate and its skip."""

    def __init__(self, before: int, width: int, stride: int, experts: int) -> None:
        super().__init__()
        self.pre_norm = nn.BatchNorm2d(before)
        self.conv = ExpertConv(before, width, stride, experts)
        self.gate = Gate(before, width, nn.Sigmoid(), bias=False)
        self.act = nn.PReLU(width)
        self.shortcut = shortcuts.create(before, width, stride, "conv")

    def forward(self, x: Tensor) -> Tensor:
        z = self.pre_norm(x)
        return self.act(self.conv(z) * self.gate(z)) + self.shortcut(x)


class ExpertNet(Staged):
    """7x7 stem, four stages of four blocks, global average, classifier."""

    keep_real = ("*.shortcut.*", "*.gate.*", "*.choose")
    """Names that stay real when the network is made binary."""

    def __init__(self, widths: Sequence[int], experts: int, num_classes: int, in_channels: int) -> None:
        stem = imagenet_stem(in_channels, widths[0], "prelu")
        blocks = stages(partial(Block, experts=experts), widths, [4] * len(widths))
        super().__init__(stem, blocks, widths[-1], num_classes)


@network
def resnet18_expert(
    num_classes: int = 1000,
    in_channels: int = 3,
    widths: Sequence[int] = IMAGENET_WIDTHS,
    experts: int = 4,
) -> ExpertNet:
    """16 convolutions of 4 experts each, 43.94 M binary weights."""
    return ExpertNet(widths, experts, num_classes, in_channels)
