"""The steps in NumPy give the logits of the engine; what 16 bits cannot hold is refused with the name of the map."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from export_networks import clamp_network, doubles_network, geometry_network, real_network
from lbit_examples import every_op
from lbit_networks import PLAIN, block_network, compact_network, random_network

from latentbit.engine import Engine
from latentbit.export import ExportError, export
from latentbit.export.c import C
from latentbit.export.parts.c_rounding import run
from latentbit.lbit import Layer, Network, checked

NETWORKS = [
    clamp_network,
    doubles_network,
    geometry_network,
    real_network,
    every_op,
    block_network,
    compact_network,
]


@pytest.mark.parametrize(
    "network", [*(make() for make in NETWORKS), *(random_network(i, PLAIN) for i in range(8))]
)
def test_without_rounding_it_is_the_engine(network: Network, tmp_path: Path) -> None:
    target = C(network)
    target.write(tmp_path)
    images = np.random.default_rng(1).normal(size=(4, *network.input_shape)).astype(np.float32)
    found, expected = run(target.plan, images, [])[0], Engine(network, isa="scalar")(images)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def scaled(network: Network, name: str, factor: float) -> Network:
    def larger(layer: Layer) -> Layer:
        if layer.name != name:
            return layer
        tensors = {key: value * np.float32(factor) for key, value in layer.tensors.items()}
        return replace(layer, tensors=tensors)

    return checked(replace(network, layers=tuple(map(larger, network.layers))))


def test_a_map_beyond_16_bit_is_refused_by_name(tmp_path: Path) -> None:
    network = scaled(compact_network(), "stem", 1e4)
    with pytest.raises(
        ExportError, match=r"--real 16: values of stem reach .* end at 65504. Leave --real 16 away"
    ):
        export(network, "c", tmp_path / "a", real="16")
    assert not (tmp_path / "a").exists()
    export(network, "c", tmp_path / "b")


def test_logits_that_move_too_far_are_refused_by_name(tmp_path: Path) -> None:
    """Random weights, where one sign that tips moves a good part of the map."""
    network = random_network(2, PLAIN)
    with pytest.raises(
        ExportError, match=r"--real 16: logits move by .*% of the largest .* alone moves them by"
    ):
        export(network, "c", tmp_path / "a", real="16")
    assert not (tmp_path / "a").exists()
