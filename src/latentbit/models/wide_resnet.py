"""WRN-22: for 32 x 32 images, kernel stage 64-64-128-256, as in PCNN, BONN and the paper.

Depth 22 = 6 * 3 + 4 by the count of Zagoruyko and Komodakis 2016; the block is that of resnet.py.

Source: Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", section 4.1, which follows
    PCNN and BONN. Confidence: high on the widths, medium on the block.
Exact: widths, depth, 4.3 M parameters.
Differs: as the ResNets, PReLU after the addition is our choice.
Packs: yes.
"""

from collections.abc import Sequence
from typing import Unpack

from latentbit.models.registry import network
from latentbit.models.resnet import ResNet, Style, small_stem


@network
def wrn22(
    num_classes: int = 10,
    in_channels: int = 3,
    widths: Sequence[int] = (64, 128, 256),
    **style: Unpack[Style],
) -> ResNet:
    """18 binary convolutions, 4.3 M parameters; widths (16, 32, 64) give the net of BONN's ablation."""
    return ResNet(small_stem, in_channels, widths, [6] * len(widths), num_classes, **style)
