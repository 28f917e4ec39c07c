"""Exported ONNX files in ONNX Runtime: the logits of the engine for every op, reference network and method."""

import sys
from pathlib import Path

import lbit_oracle
import numpy as np
import pytest
import torch
from export_networks import clamp_network, gated_network, geometry_network, map_network, real_network
from lbit_examples import every_op, tiny
from lbit_networks import PLAIN, compact_network, random_network
from packing_models import binary

import latentbit
from latentbit import methods, models
from latentbit.engine import Engine
from latentbit.export import ExportError, export
from latentbit.lbit import Network, to_bytes
from latentbit.packing import CannotPack

onnx = pytest.importorskip("onnx", reason="pip install 'latentbit[export]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'latentbit[export]'")


def logits(file: Path, images: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": images})[0]


def same_as_engine(network: Network, file: Path, weights: str = "bits") -> None:
    export(network, "onnx", file, weights=weights)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    images = np.random.default_rng(5).normal(size=(3, *network.input_shape)).astype(np.float32)
    expected = Engine(network)(images)
    np.testing.assert_allclose(logits(file, images), expected, atol=1e-5 * np.abs(expected).max())


NETWORKS = {
    "every op": every_op,
    "tiny": tiny,
    "geometry": geometry_network,
    "real": real_network,
    "gated": gated_network,
    "clamp": clamp_network,
    "map": map_network,
    "compact": compact_network,
    "random": lambda: random_network(1, PLAIN),
}


@pytest.mark.parametrize("weights", ["bits", "float"])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_layer(name: str, weights: str, tmp_path: Path) -> None:
    same_as_engine(NETWORKS[name](), tmp_path / "m.onnx", weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", models.names())
def test_every_reference_network(name: str, tmp_path: Path) -> None:
    model = binary(models.create(name, num_classes=10))
    same_as_engine(latentbit.pack(model, torch.randn(2, 3, 32, 32)), tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[] if name == "xnor" else [pytest.mark.slow]) for name in methods.names()],
)
def test_every_deployable_method(method: str, tmp_path: Path) -> None:
    model = models.create("resnet18_compact", in_channels=1, widths=(4,))
    latentbit.binarize_(model, method)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    try:
        network = latentbit.pack(model.eval(), torch.randn(4, 1, 8, 8))
    except CannotPack:
        pytest.skip("cannot be packed at all")
    same_as_engine(network, tmp_path / "m.onnx")


def test_zero_is_plus_one(tmp_path: Path) -> None:
    """Sign of ONNX gives 0 for 0."""
    network = tiny()
    images = np.array([0.0, -0.0, 1e-45, -1e-45], np.float32).reshape(2, 1, 1, 2)
    export(network, "onnx", tmp_path / "m.onnx")
    np.testing.assert_array_equal(
        logits(tmp_path / "m.onnx", images), lbit_oracle.run(network, images).astype(np.float32)
    )


def test_the_file_is_as_small_as_ours_and_knows_its_classes(tmp_path: Path) -> None:
    network = compact_network()
    report = export(network, "onnx", tmp_path / "m.onnx")
    plain = export(network, "onnx", tmp_path / "f.onnx", weights="float")
    assert report.data["bytes"] == (tmp_path / "m.onnx").stat().st_size < 1.1 * len(to_bytes(network))
    assert plain.data["bytes"] > 10 * report.data["bytes"]
    notes = {note.key: note.value for note in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert notes["mean"] == "[0.5]" and notes["std"] == "[0.25]"


def test_without_the_runtime_it_is_written_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    report = export(tiny(), "onnx", tmp_path / "m.onnx")
    assert "pip install onnxruntime" in str(report) and (tmp_path / "m.onnx").exists()


def test_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--weights int8: choose bits or float"):
        export(tiny(), "onnx", tmp_path / "m.onnx", weights="int8")
