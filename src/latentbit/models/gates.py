"""A number per channel and image that scales a map: squeeze-and-excitation (Hu et al., 2018) as binary networks use it.

G(z) = s( F2 relu( F1 mean over pixels of z ) ),  F1 to an eighth of the channels
"""

from torch import Tensor, nn


class Gate(nn.Module):
    """(N, `before`, H, W) -> (N, `width`, 1, 1); `squash` is s, a sigmoid. Real-valued: name it in keep_real."""

    def __init__(self, before: int, width: int, squash: nn.Module, *, bias: bool, reduction: int = 8) -> None:
        super().__init__()
        inner = max(1, before // reduction)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(before, inner, 1, bias=bias)
        self.relu = nn.ReLU()
        self.expand = nn.Conv2d(inner, width, 1, bias=bias)
        self.squash = squash

    def forward(self, z: Tensor) -> Tensor:
        return self.squash(self.expand(self.relu(self.reduce(self.mean(z)))))
