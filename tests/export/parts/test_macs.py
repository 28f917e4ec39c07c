import numpy as np
from lbit_examples import every_op, tiny
from lbit_networks import block_network

from latentbit.export.parts.macs import macs, real_weight


def test_macs_follow_the_formula() -> None:
    assert macs(tiny()) == (3 * 2, 0)
    assert macs(block_network()) == (32 * 16 * 9 * 4 * 4, 16 * 3 * 9 * 8 * 8)
    # Two 3x3 convolutions of 6 on 6 channels, 6x6; one of 6 on 12 in two groups, 3x3; 5 on 4. Real: 3 on 6, 12 on 5.
    assert macs(every_op()) == (2 * 36 * 9 * 36 + 12 * 3 * 9 + 20, 6 * 3 * 9 * 36 + 60)


def test_real_weights_of_eight_bits_are_scaled() -> None:
    layer = block_network()["stem"]
    tensors = {"weight": np.full((2, 1, 1, 1), 3, np.int8), "weight_scale": np.array([0.5, 2], np.float32)}
    small = type(layer)("conv", "c", ("input",), {}, tensors)
    assert real_weight(small).ravel().tolist() == [1.5, 6.0]
    assert real_weight(layer) is not layer.tensors["weight"]
