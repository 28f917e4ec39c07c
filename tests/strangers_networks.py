"""Networks as people write them, without latentbit in mind, for 8 x 8 digits: those of bench/strangers.py.

All but one are written from torch's own parts; that one comes from transformers, where it is installed.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def relu_cnn() -> nn.Module:
    def block(n_in: int, n_out: int) -> list[nn.Module]:
        return [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]

    return nn.Sequential(
        *block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip


class LeNet(nn.Module):
    """Activations by function: nothing that binarize_ could replace."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc1, self.fc2, self.fc3 = nn.Linear(128, 96), nn.Linear(96, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(F.relu(self.fc2(x)))


class InvertedResidual(nn.Module):
    """MobileNetV2's block; with a gate and another activation it is V3's."""

    def __init__(self, n_in: int, n_out: int, stride: int, act: type[nn.Module], gate: bool) -> None:
        super().__init__()
        wide = 4 * n_in
        layers = [nn.Conv2d(n_in, wide, 1, bias=False), nn.BatchNorm2d(wide), act(inplace=True)]  # type: ignore[call-arg]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide)]
        layers += [act(inplace=True)]  # type: ignore[call-arg]
        layers += [SqueezeExcitation(wide, nn.ReLU, nn.Hardsigmoid)] if gate else []
        layers += [nn.Conv2d(wide, n_out, 1, bias=False), nn.BatchNorm2d(n_out)]
        self.conv = nn.Sequential(*layers)
        self.skips = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.skips else self.conv(x)


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, act: type[nn.Module], gate: type[nn.Module]) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.fc2(self.act(self.fc1(F.adaptive_avg_pool2d(x, 1)))))


def _mobilenet(act: type[nn.Module], gate: bool) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), act(inplace=True),  # type: ignore[call-arg]
        InvertedResidual(16, 16, 1, act, gate), InvertedResidual(16, 24, 2, act, gate),
        InvertedResidual(24, 24, 1, act, gate),
        nn.Conv2d(24, 96, 1, bias=False), nn.BatchNorm2d(96), act(inplace=True),  # type: ignore[call-arg]
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(96, 10),
    )  # fmt: skip


def mobilenet_relu6() -> nn.Module:
    return _mobilenet(nn.ReLU6, gate=False)


def mobilenet_v3() -> nn.Module:
    return _mobilenet(nn.Hardswish, gate=True)


class UNet(nn.Module):
    """Logits of every pixel: which digit it belongs to, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = self._double(1, 16), self._double(16, 32)
        self.bottom = self._double(32, 64)
        self.up2, self.merge2 = nn.ConvTranspose2d(64, 32, 2, 2), self._double(64, 32)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.merge1 = self._double(48, 16)
        self.head = nn.Conv2d(16, 11, 1)

    @staticmethod
    def _double(n_in: int, n_out: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        x = self.bottom(F.max_pool2d(second, 2))
        x = self.merge2(torch.cat([second, self.up2(x)], dim=1))
        return self.head(self.merge1(torch.cat([first, self.up1(x)], dim=1)))


class SiLUBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv, self.bn, self.act = (
            nn.Conv2d(channels, channels, 3, 1, 1),
            nn.BatchNorm2d(channels),
            nn.SiLU(),
        )
        self.se = SqueezeExcitation(channels, nn.SiLU, nn.Sigmoid)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.se(self.act(self.bn(self.conv(x))))


def silu_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.SiLU(), SiLUBlock(32), SiLUBlock(32),
        nn.AvgPool2d(2), SiLUBlock(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class ViTBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, 4)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 48, 2, 2)
        self.token, self.places = (
            nn.Parameter(torch.zeros(1, 1, 48)),
            nn.Parameter(torch.randn(1, 17, 48) * 0.02),
        )
        self.blocks = nn.Sequential(ViTBlock(48), ViTBlock(48))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Encoder(nn.Module):
    """nn.TransformerEncoder over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 48)
        layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.embed(x.squeeze(1))).mean(1))


def transformers_resnet() -> nn.Module:
    """ResNetForImageClassification of transformers; ImportError where that is not installed."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        num_channels=1,
        embedding_size=16,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        layer_type="basic",
        num_labels=10,
    )
    return ResNetForImageClassification(config)


class BasicBlock(nn.Module):
    """As in timm: names, order and the one activation after the addition."""

    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1, self.act1 = nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2, self.act2 = nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.act1(self.bn1(self.conv1(x)))
        return self.act2(self.bn2(self.conv2(x)) + shortcut)


def timm_resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        BasicBlock(16, 16), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


class RegNetBlock(nn.Module):
    """Bottleneck with grouped convolution; RegNetY's gate."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(n_in, n_out, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(
            nn.Conv2d(n_out, n_out, 3, stride, 1, groups=n_out // 8, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
        )
        self.se = SqueezeExcitation(n_out, nn.ReLU, nn.Sigmoid)
        self.conv3 = nn.Sequential(nn.Conv2d(n_out, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
        self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
        self.act3 = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.act3(self.conv3(self.se(self.conv2(self.conv1(x)))) + self.downsample(x))


def timm_regnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        RegNetBlock(16, 32, 1), RegNetBlock(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


class DenseLayer(nn.Module):
    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.relu1, self.conv1 = (
            nn.BatchNorm2d(n_in),
            nn.ReLU(),
            nn.Conv2d(n_in, 4 * growth, 1, bias=False),
        )
        self.norm2, self.relu2 = nn.BatchNorm2d(4 * growth), nn.ReLU()
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        new = self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))
        return torch.cat([x, new], dim=1)


def densenet() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(1, 16, 3, padding=1, bias=False)]
    layers += [DenseLayer(16 + 12 * i, 12) for i in range(3)]
    layers += [nn.BatchNorm2d(52), nn.ReLU(), nn.Conv2d(52, 26, 1, bias=False), nn.AvgPool2d(2)]
    layers += [DenseLayer(26 + 12 * i, 12) for i in range(3)]
    layers += [nn.BatchNorm2d(62), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(62, 10)]
    return nn.Sequential(*layers)


def vgg_bn() -> nn.Module:
    layers: list[nn.Module] = []
    n_in = 1
    for n_out in (16, 16, 0, 32, 32, 0, 64, 64):
        if not n_out:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)]
        n_in = n_out
    layers += [nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten()]
    layers += [nn.Linear(256, 128), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(128, 10)]
    return nn.Sequential(*layers)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ReLU CNN": relu_cnn,
    "LeNet, F.relu": LeNet,
    "MobileNet, ReLU6": mobilenet_relu6,
    "MobileNetV3, SE, hardswish": mobilenet_v3,
    "U-Net": UNet,
    "SiLU net, SE": silu_net,
    "tiny ViT": TinyViT,
    "nn.TransformerEncoder": Encoder,
    "ResNet of transformers": transformers_resnet,
    "ResNet as in timm": timm_resnet,
    "RegNetY as in timm": timm_regnet,
    "DenseNet": densenet,
    "VGG with BatchNorm": vgg_bn,
}


def logits(output: object) -> Tensor:
    """Of a network that gives a tensor, or an output of transformers."""
    return output if isinstance(output, Tensor) else output.logits  # type: ignore[attr-defined]
