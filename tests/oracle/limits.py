"""How much memory and work one image may take: the one place that says so, for the reader and for the engine.

The rules count both for every layer with exact integers; the engine hands MAX_BYTES on to the native code, which
counts what it really allocates and refuses to go beyond it too.
"""

from dataclasses import dataclass

MAX_BYTES = 1 << 31
"""All values of one image, padded copies of what windows slide over, and weights as the kernels hold them."""
MAX_NUMBERS = 1 << 28
"""In one value, or in the padded copy of one: native code then counts pixels and channels in 32 bits."""
MAX_PRODUCTS = 1 << 40
"""Multiplications per image, about 500 times those of ResNet-18."""
MAX_TAPS = 1 << 24
"""Products summed into one output: float32 holds every integer up to here."""
MAX_SIZE = 1 << 20
"""Of a kernel, stride, padding, dilation or group count."""

WEIGHT_LANES = 16
"""Real weights are held for this many output channels of a group at a time, as float32."""
BIT_LANES = 64
"""Binary weights are held for this many output channels of a group at a time, 4 of them in a byte."""


@dataclass
class Cost:
    """Of one layer and one image."""

    value_bytes: int = 0
    padded_bytes: int = 0
    weight_bytes: int = 0
    products: int = 0

    @property
    def n_bytes(self) -> int:
        return self.value_bytes + self.padded_bytes + self.weight_bytes


def real_weight_bytes(n_out: int, groups: int, taps: int) -> int:
    """float32 weights of a convolution with so many products per output."""
    return 4 * taps * groups * _whole(n_out // groups, WEIGHT_LANES)


def binary_weight_bytes(n_out: int, groups: int, n_in: int, taps: int) -> int:
    """Binary weights of `n_in` channels under each of `taps` taps, one byte per 4 channels."""
    return (taps * -(-n_in // 4) + 2) * groups * _whole(n_out // groups, BIT_LANES)


def _whole(n: int, lanes: int) -> int:
    return -(-n // lanes) * lanes
