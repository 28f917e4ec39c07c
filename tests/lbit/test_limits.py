"""The bound on memory: weights as the kernels hold them, and what a file may cost in all."""

import numpy as np
import pytest
from oracle.limits import Cost, binary_weight_bytes, real_weight_bytes

from latentbit.lbit import Layer, Network, PackedFileError, checked

POINT = {"stride": [1, 1], "padding": [0] * 4, "dilation": [1, 1]}


def test_weights_are_counted_as_kernels_hold_them() -> None:
    # 16 channels of 3 inputs and 49 taps; one channel per group takes the room of 16.
    assert real_weight_bytes(64, 1, 147) == 4 * 64 * 147
    assert real_weight_bytes(64, 64, 9) == 4 * 64 * 16 * 9
    # 64 channels at a time, a byte for 4 inputs, and up to 2 bytes to fill a group of lookups.
    assert binary_weight_bytes(64, 1, 64, 9) == 64 * (9 * 16 + 2)
    assert binary_weight_bytes(1, 1, 64, 9) == binary_weight_bytes(64, 1, 64, 9)
    assert Cost(1, 2, 3, products=9).n_bytes == 6


def test_weights_that_grow_when_they_are_unpacked_are_refused() -> None:
    """Half a million groups of one channel: 36 MB in the file, 64 times that as the kernels hold them."""
    n = 1 << 19
    tensors = {"weight": np.ones((n, 1, 9, 8), np.int8), "weight_scale": np.ones(n, np.float32)}
    tensors["bias"] = np.zeros(n, np.float32)
    layers = (
        Layer("conv", "c", ("input",), POINT | {"groups": n, "padding": [4, 4, 4, 3]}, tensors),
        Layer("flatten", "f", ("c",)),
    )
    with pytest.raises(PackedFileError, match="'c' .conv.: values and weights .* more than 2147483648"):
        checked(Network((n, 1, 1), layers))
