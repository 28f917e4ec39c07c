"""What follows the addition of a block: the paper's PReLU, and those of methods that bring their own."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit.errors import LatentbitError

Activation = Literal["prelu", "rprelu", "maxout", "dprelu", "hardtanh", "identity"]


class RPReLU(nn.Module):
    """PReLU(x + a) + b, shifts learned per channel.

    Paper: Liu et al., "ReActNet", 2020. Confidence: high (released code).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before = nn.Parameter(torch.zeros(channels, 1, 1))
        self.prelu = nn.PReLU(channels)
        self.after = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.prelu(x + self.before) + self.after


class Maxout(nn.Module):
    """p max(x, 0) + n min(x, 0), slopes of both sides learned per channel; p starts at 1, n at 0.25.

    Paper: Tu et al., "AdaBin", 2022. Confidence: high (released code).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.positive = nn.Parameter(torch.ones(channels, 1, 1))
        self.negative = nn.Parameter(torch.full((channels, 1, 1), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        return self.negative * x + (self.positive - self.negative) * F.relu(x)


class DPReLU(nn.Module):
    """slope (x - a) - c, slope p where x >= a and n elsewhere; a, c, p, n learned per channel, p from 1, n from 0.25.

    Paper: Zhang et al., "PokeBNN", 2022. Confidence: high (released code).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before = nn.Parameter(torch.zeros(channels, 1, 1))
        self.slopes = Maxout(channels)
        self.after = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.slopes(x - self.before) - self.after


_KINDS: dict[str, Callable[[int], nn.Module]] = {
    "prelu": nn.PReLU,
    "rprelu": RPReLU,
    "maxout": Maxout,
    "dprelu": DPReLU,
    "hardtanh": lambda channels: nn.Hardtanh(),
    "identity": lambda channels: nn.Identity(),
}


def create(kind: Activation, channels: int) -> nn.Module:
    """A new one for a map of so many channels."""
    if kind not in _KINDS:
        raise LatentbitError(f"activation {kind!r}: must be one of {', '.join(_KINDS)}")
    return _KINDS[kind](channels)
