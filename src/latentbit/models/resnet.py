"""Binary ResNet: made for binary layers, a skip around every 3x3 convolution, PReLU per channel unless told otherwise.

    y = PReLU( BN(conv3x3(sign(BN(x)))) + S(x) ),  norm="after" without the inner BN, norm="before" without the outer

S where the map shrinks: 2x2 max-pool; where channels double: the tensor concatenated with itself; else x. What releases
of methods do otherwise are options: shortcut, activation, stem, head_norm, head_relu, init, gamma.

Source: Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", section 4.1. Confidence:
    high on widths and depths, medium on the order within the block.
Exact: widths, depths, a skip around every binary convolution, max-pool and repeated channels in the shortcut.
Differs: the paper does not say where PReLU stands; after the addition is our choice.
Packs: yes.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypedDict, Unpack, get_args

from torch import Tensor, nn

from latentbit.errors import LatentbitError
from latentbit.models import activations, shortcuts
from latentbit.models.activations import Activation
from latentbit.models.registry import Fan, network
from latentbit.models.shortcuts import Shortcut
from latentbit.models.staged import Staged, stages

Norm = Literal["after", "before", "both"]
"""Where BN stands. The residual stream is mostly positive, so without BN before it the sign of a deep layer is
nearly constant at first; with BN there, sign(BN(x)) is a learned threshold per channel that costs nothing. "both" is
the default because it learns best (results/latent_forms); real-valued networks need "after" only."""


IMAGENET_WIDTHS = (64, 128, 256, 512)


class BlockStyle(TypedDict, total=False):
    """How the blocks of a ResNet are built; Block has the defaults."""

    shortcut: Shortcut
    norm: Norm
    activation: Activation


class Style(BlockStyle, total=False):
    """How a ResNet is built: its blocks, and what releases of methods do otherwise around them."""

    stem: Activation
    """What follows the BN of the stem: PReLU for small images, nothing for ImageNet."""
    head_relu: bool
    """ReLU in front of the global average: no."""
    head_norm: bool
    """BN between the average and the classifier: no."""
    init: Fan
    """Whether weights start with the fan-out of their layer (ours) or with its fan-in, the classifier too."""
    gamma: float
    """What gamma of the BN of maps starts at: 1."""


class Block(nn.Module):
    """One convolution with its own skip; two of these make the usual basic block."""

    def __init__(
        self,
        before: int,
        width: int,
        stride: int,
        *,
        shortcut: Shortcut = "pool",
        norm: Norm = "both",
        activation: Activation = "prelu",
    ) -> None:
        super().__init__()
        if norm not in get_args(Norm):
            raise LatentbitError(f"norm {norm!r}: must be one of {', '.join(get_args(Norm))}")
        self.pre_norm = nn.Identity() if norm == "after" else nn.BatchNorm2d(before)
        self.conv = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm = nn.Identity() if norm == "before" else nn.BatchNorm2d(width)
        self.shortcut = shortcuts.create(before, width, stride, shortcut)
        self.act = activations.create(activation, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.norm(self.conv(self.pre_norm(x))) + self.shortcut(x))


def small_stem(in_channels: int, width: int, act: Activation = "prelu") -> nn.Sequential:
    """For images of 8 to 64 pixels: 3x3, full resolution, PReLU as everywhere else."""
    conv = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
    after = activations.create(act, width)
    return nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(width), act=after))


def imagenet_stem(in_channels: int, width: int, act: Activation = "identity") -> nn.Sequential:
    """7x7 stride 2, then max-pool. No activation, as in Bi-Real Net: the sign that follows is one."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["conv"] = nn.Conv2d(in_channels, width, 7, stride=2, padding=3, bias=False)
    layers["norm"] = nn.BatchNorm2d(width)
    if act != "identity":
        layers["act"] = activations.create(act, width)
    layers["pool"] = nn.MaxPool2d(3, stride=2, padding=1)
    return nn.Sequential(layers)


Stem = Callable[..., nn.Sequential]
"""(in_channels, width[, activation]) -> the layers in front of the first stage."""


class ResNet(Staged):
    """Stem, stages of `depths[i]` blocks and `widths[i]` channels, global average, classifier."""

    keep_real = ("*.shortcut.*",)
    """Names that stay real when the network is made binary: the 1x1 convolutions of shortcut="conv"."""

    def __init__(
        self,
        make_stem: Stem,
        in_channels: int,
        widths: Sequence[int],
        depths: Sequence[int],
        num_classes: int,
        *,
        stem: Activation | None = None,
        head_relu: bool = False,
        head_norm: bool = False,
        init: Fan = "fan_out",
        gamma: float = 1.0,
        **style: Unpack[BlockStyle],
    ) -> None:
        make_block = partial(Block, **style)
        super().__init__(
            make_stem(in_channels, widths[0], *([stem] if stem else [])),
            stages(make_block, widths, depths),
            widths[-1],
            num_classes,
            init,
            gamma,
        )
        self.head_act = nn.ReLU() if head_relu else nn.Identity()
        self.head_norm = nn.BatchNorm1d(widths[-1]) if head_norm else nn.Identity()

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.head_norm(self.flatten(self.pool(self.head_act(features)))))


@network
def resnet18_compact(
    num_classes: int = 10,
    in_channels: int = 3,
    widths: Sequence[int] = (16, 16, 32, 64),
    **style: Unpack[Style],
) -> ResNet:
    """16 binary convolutions, 0.18 M binary weights; runs on 8x8 images."""
    return ResNet(small_stem, in_channels, widths, [4] * len(widths), num_classes, **style)


@network
def resnet20(
    num_classes: int = 10,
    in_channels: int = 3,
    widths: Sequence[int] = (16, 32, 64),
    **style: Unpack[Style],
) -> ResNet:
    """18 binary convolutions, 0.27 M parameters, in the paper's block; activation="hardtanh" as in IR-Net."""
    return ResNet(small_stem, in_channels, widths, [6] * len(widths), num_classes, **style)


@network
def resnet18(num_classes: int = 1000, in_channels: int = 3, **style: Unpack[Style]) -> ResNet:
    """ImageNet ResNet-18: 16 binary convolutions, 10.985 M binary weights."""
    return ResNet(imagenet_stem, in_channels, IMAGENET_WIDTHS, (4, 4, 4, 4), num_classes, **style)


@network
def resnet34(num_classes: int = 1000, in_channels: int = 3, **style: Unpack[Style]) -> ResNet:
    """ImageNet ResNet-34: 32 binary convolutions, 21.086 M binary weights."""
    return ResNet(imagenet_stem, in_channels, IMAGENET_WIDTHS, (6, 8, 12, 6), num_classes, **style)
