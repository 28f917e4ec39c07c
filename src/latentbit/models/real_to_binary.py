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
from latentbit.models.registry import network
from latentbit.models.resnet import IMAGENET_WIDTHS
from latentbit.models.staged import Staged, stages


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


class RealToBinaryNet(Staged):
    """7x7 stem, four stages of four blocks, global average, classifier."""

    keep_real = ("*.shortcut.*", "*.gate.*")
    """Names that stay real when the network is made binary."""

    def __init__(self, widths: Sequence[int], num_classes: int, in_channels: int) -> None:
        stem = nn.Sequential(
            OrderedDict(
                conv=nn.Conv2d(in_channels, widths[0], 7, stride=2, padding=3, bias=False),
                norm=nn.BatchNorm2d(widths[0]),
                act=nn.ReLU(),
                pool=nn.MaxPool2d(3, stride=2, padding=1),
            )
        )
        super().__init__(stem, stages(Block, widths, [4] * len(widths)), widths[-1], num_classes)


@network
def resnet18_real_to_binary(
    num_classes: int = 1000, in_channels: int = 3, widths: Sequence[int] = IMAGENET_WIDTHS
) -> RealToBinaryNet:
    """16 binary convolutions, 10.985 M binary weights, 0.29 M weights of gates."""
    return RealToBinaryNet(widths, num_classes, in_channels)
