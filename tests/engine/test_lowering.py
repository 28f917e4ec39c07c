"""The fused program computes what the layers say, one by one."""

import lbit_oracle
import numpy as np
from lbit_networks import block_network, every_network, random_network

from latentbit.engine import Engine, available


def test_fused_networks_equal_the_oracle() -> None:
    for i, network in enumerate(every_network()):
        images = np.random.default_rng(i).normal(size=(3, *network.input_shape)).astype(np.float32)
        # float32, so that values on the brink of a threshold fall to the same side.
        oracle = lbit_oracle.values(network, images, np.float32)[network.layers[-1].name]
        for isa in available():
            found = Engine(network, isa=isa, threads=1 + i % 2)(images)
            np.testing.assert_allclose(found, oracle, rtol=1e-4, atol=1e-4 * np.abs(oracle).max())


def test_real_weights_may_be_stored_in_16_and_8_bits() -> None:
    from dataclasses import replace

    network = random_network(0)
    last = network.layers[-1]
    scale = np.abs(last.tensors["weight"]).max(axis=1) / 127
    steps = np.rint(last.tensors["weight"] / scale[:, None]).astype(np.int8)
    images = np.random.default_rng(0).normal(size=(1, *network.input_shape)).astype(np.float32)
    for weight in (
        {"weight": last.tensors["weight"].astype(np.float16)},
        {"weight": steps, "weight_scale": scale.astype(np.float32)},
    ):
        tensors = {**last.tensors, **weight}
        stored = replace(network, layers=(*network.layers[:-1], replace(last, tensors=tensors)))
        oracle = lbit_oracle.values(stored, images, np.float32)[last.name]
        np.testing.assert_allclose(Engine(stored)(images), oracle, rtol=1e-4, atol=1e-3)


def test_a_residual_block_becomes_four_native_steps() -> None:
    steps = Engine(block_network())._program.steps
    assert [op for _, op, _ in steps] == ["conv", "max_pool", "binary_conv", "avg_pool"]
