"""Real-to-Binary: a ResNet whose binary convolutions are scaled by a gate that sees their real input.

    z = BN(x),   y = PReLU( conv3x3(z) G(z) ) + S(x),   G = sigmoid( F2 relu( F1 mean of z ) ),  no biases

S is a 2x2 average, a real 1x1 convolution and BN where the map shrinks. Trained with method "bnn": the
gate is the scale.

Source: Martinez et al., "Training Binary Neural Networks with Real-to-Binary Convolutions", 2020, and the port in
    larq's zoo (its own release is a read-me). Confidence: high on the block, medium on the losses.
Exact: stem, block, gate (an eighth of the channels) and shortcuts.
Differs: the first stage of its training, a network with tanh activations, is left out; attention is matched at the
    ends of 4 stages, not of 8 blocks; soft labels replace the labels, where it adds the two. The recipe says the
    rest.
Packs: yes.
"""

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

from latentbit.models import shortcuts
from latentbit.models.gates import Gate
from latentbit.models.registry import initialise_, network
from latentbit.models.resnet import IMAGENET_WIDTHS


class Block(nn.Module):
    """One binary convolution with its gate and its skip; the paper's block is two of these."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.pre_norm = nn.BatchNorm2d(before)
        self.conv = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.gate = Gate(before, width, nn.Sigmoid(), bias=False)
        self.act = nn.PReLU(width)
        self.shortcut = shortcuts.create(before, width, stride, "conv")

    def forward(self, x: Tensor) -> Tensor:
        z = self.pre_norm(x)
        return self.act(self.conv(z) * self.gate(z)) + self.shortcut(x)


class RealToBinaryNet(nn.Module):
    """7x7 stem, four stages of four blocks, global average, classifier."""

    keep_real = ("*.shortcut.*", "*.gate.*")
    """Names that stay real when the network is made binary."""

    def __init__(self, widths: Sequence[int], num_classes: int, in_channels: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            OrderedDict(
                conv=nn.Conv2d(in_channels, widths[0], 7, stride=2, padding=3, bias=False),
                norm=nn.BatchNorm2d(widths[0]),
                act=nn.ReLU(),
                pool=nn.MaxPool2d(3, stride=2, padding=1),
            )
        )
        stages, before = [], widths[0]
        for i, width in enumerate(widths):
            first = Block(before, width, 1 if i == 0 else 2)
            stages.append(nn.Sequential(first, *(Block(width, width, 1) for _ in range(3))))
            before = width
        self.stages = nn.Sequential(*stages)
        self.stage_names = tuple(f"stages.{i}" for i in range(len(stages)))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(before, num_classes)
        initialise_(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the last stage's map (N, D, h, w)."""
        return self.stages(self.stem(x))

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.flatten(self.pool(features)))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


@network
def resnet18_real_to_binary(
    num_classes: int = 1000, in_channels: int = 3, widths: Sequence[int] = IMAGENET_WIDTHS
) -> RealToBinaryNet:
    """16 binary convolutions, 10.985 M binary weights, 0.29 M weights of gates."""
    return RealToBinaryNet(widths, num_classes, in_channels)
