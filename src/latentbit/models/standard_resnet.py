"""Standard ResNet: real-valued ResNet-18 and 34, the yardstick of cost tables, teachers to distil from.

    y = ReLU( BN(conv3x3(ReLU(BN(conv3x3(x))))) + S(x) ),  S = BN(conv1x1(x)) with the block's stride, else x

Parameter names are those of torchvision and timm, so that their checkpoints load as they are.

Source: He et al., "Deep Residual Learning for Image Recognition", 2016, and torchvision. Confidence: high.
Exact: all layers.
Differs: nothing.
Packs: yes.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from latentbit.models.registry import initialise_, network


class BasicBlock(nn.Module):
    """Two convolutions, one skip."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or before != width:
            conv = nn.Conv2d(before, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.downsample(x))


def stage(before: int, width: int, depth: int) -> nn.Sequential:
    """`depth` blocks; where channels double, the map halves."""
    first = BasicBlock(before, width, 1 if before == width else 2)
    return nn.Sequential(first, *(BasicBlock(width, width, 1) for _ in range(depth - 1)))


class StandardResNet(nn.Module):
    """7x7 stem, four stages of `depths[i]` basic blocks, global average, classifier."""

    keep_real = ("*.downsample.*",)
    """Names that stay real when the network is made binary."""
    stage_names = ("layer1", "layer2", "layer3", "layer4")
    """Modules after which maps of student and teacher are compared (losses.attention_matching)."""

    def __init__(self, depths: Sequence[int], num_classes: int, in_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(64, 64, depths[0])
        self.layer2 = stage(64, 128, depths[1])
        self.layer3 = stage(128, 256, depths[2])
        self.layer4 = stage(256, 512, depths[3])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(512, num_classes)
        initialise_(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the last stage's map (N, 512, h, w)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.flatten(self.avgpool(features)))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


@network
def resnet18_standard(num_classes: int = 1000, in_channels: int = 3) -> StandardResNet:
    """11.69 M parameters."""
    return StandardResNet((2, 2, 2, 2), num_classes, in_channels)


@network
def resnet34_standard(num_classes: int = 1000, in_channels: int = 3) -> StandardResNet:
    """21.80 M parameters."""
    return StandardResNet((3, 4, 6, 3), num_classes, in_channels)
