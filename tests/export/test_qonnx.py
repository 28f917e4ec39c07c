"""QONNX files: every sign and every binary weight is a BipolarQuant, and the logits are the engine's."""

from pathlib import Path

import numpy as np
import pytest
from export_networks import geometry_network
from lbit_examples import every_op, tiny
from lbit_networks import compact_network

from latentbit.engine import Engine
from latentbit.export import export
from latentbit.export.qonnx import DOMAIN
from latentbit.lbit import Network

onnx = pytest.importorskip("onnx", reason="pip install 'latentbit[export]'")
reference = pytest.importorskip("onnx.reference")
NETWORKS = {"tiny": tiny, "every op": every_op, "geometry": geometry_network, "compact": compact_network}


class BipolarQuant(reference.op_run.OpRun):  # type: ignore[name-defined, misc]
    """What the specification of QONNX says: scale where x >= 0, else -scale."""

    op_domain = DOMAIN

    def _run(self, x: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray]:
        return (np.where(x >= 0, scale, -scale).astype(np.float32),)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_reference_evaluator_computes_the_engines_logits(name: str, tmp_path: Path) -> None:
    network: Network = NETWORKS[name]()
    export(network, "qonnx", tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    images = np.random.default_rng(5).normal(size=(1, *network.input_shape)).astype(np.float32)
    images[0, :, :1] = 0.0
    evaluator = reference.ReferenceEvaluator(model, new_ops=[BipolarQuant])
    expected = Engine(network)(images)
    found = evaluator.run(None, {"image": images})[0]
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    n_bits = sum(
        layer.bits and layer.op in ("sign", "binary_conv", "binary_linear") for layer in network.layers
    )
    n_weights = sum(layer.op.startswith("binary") for layer in network.layers)
    nodes = [node for node in model.graph.node if node.op_type == "BipolarQuant"]
    assert len(nodes) == n_bits + n_weights and {node.domain for node in nodes} == {DOMAIN}


def test_in_qonnx_itself(tmp_path: Path) -> None:
    pytest.importorskip("qonnx", reason="pip install qonnx")
    for make in NETWORKS.values():
        assert export(make(), "qonnx", tmp_path / "m.onnx").data["difference"] < 1e-5
