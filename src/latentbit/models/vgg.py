"""VGG-small: for 32 x 32 images, six 3x3 convolutions, one classifier, no skips.

    conv -> [2x2 max-pool after every second conv] -> BN -> hard tanh, then flatten -> dropout -> linear

The pool comes before BN: a binary net pools integers.

Source: Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", section 4.1, and the
    releases of IR-Net, RBNN and ReCU. Confidence: high.
Exact: the layers of these releases, plus the paper's dropout before the classifier.
Differs: nothing.
Packs: yes.
"""

from collections import OrderedDict

from torch import Tensor, nn

from latentbit.models.registry import initialise_, network

WIDTHS = (128, 128, 256, 256, 512, 512)


class VGGSmall(nn.Module):
    """Takes 8x8 images and larger. `final_map`: side of the map that the classifier sees, image side / 8."""

    def __init__(self, num_classes: int, in_channels: int, dropout: float, final_map: int) -> None:
        super().__init__()
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i, (before, width) in enumerate(zip((in_channels, *WIDTHS), WIDTHS, strict=False)):
            layers[f"conv{i}"] = nn.Conv2d(before, width, 3, padding=1, bias=False)
            if i % 2 == 1:
                layers[f"pool{i}"] = nn.MaxPool2d(2)
            layers[f"norm{i}"] = nn.BatchNorm2d(width)
            layers[f"act{i}"] = nn.Hardtanh()
        self.features = nn.Sequential(layers)
        # The identity for images of side 8 * final_map, so that other sizes run too.
        self.pool = nn.AdaptiveAvgPool2d(final_map)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(WIDTHS[-1] * final_map**2, num_classes)
        initialise_(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, 512, H/8, W/8)."""
        return self.features(x)

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.dropout(self.flatten(self.pool(features))))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


@network
def vgg_small(
    num_classes: int = 10, in_channels: int = 3, dropout: float = 0.5, final_map: int = 4
) -> VGGSmall:
    """4.66 M parameters, 5 binary convolutions; `final_map=1` suits 8x8 images."""
    return VGGSmall(num_classes, in_channels, dropout, final_map)
