"""Exported OpenVINO files, read back by OpenVINO: 1-bit convolutions with the engine's logits."""

import sys
from pathlib import Path

import numpy as np
import pytest
from export_networks import binary_conv, clamp_network, map_network, real_network
from lbit_networks import HALVE, PLAIN, block_network, compact_network, normal, random_network

from latentbit.engine import Engine
from latentbit.export import ExportError, export
from latentbit.lbit import Layer, Network, checked

ov = pytest.importorskip("openvino", reason="pip install 'latentbit[export]'")


def bits_to_bits_network() -> Network:
    """As in VGG: thresholds on sums, pools of bits, strides, gaps between taps, padding on one side."""
    rng = np.random.default_rng(0)
    fc = {"weight": normal(rng, 4, 24), "bias": normal(rng, 4)}
    flip = {"threshold": normal(rng, 8), "flip": np.arange(8, dtype=np.uint8) % 2}
    layers = (
        Layer("sign", "s", ("input",), {}, flip),
        binary_conv("a", "s", 8, 64, (3, 3), bits=True),
        Layer("max_pool", "pool", ("a",), HALVE),
        binary_conv("b", "pool", 64, 16, (3, 2), padding=[1, 0, 0, 1], bits=True),
        binary_conv("c", "b", 16, 40, (3, 3), stride=[2, 1], padding=[2, 1, 0, 1], bits=True),
        binary_conv("d", "c", 40, 24, (3, 3), dilation=[2, 2], padding=[2, 2, 2, 2]),
        Layer("global_avg_pool", "mean", ("d",)),
        Layer("linear", "fc", ("mean",), {}, fc),
    )
    return checked(Network((8, 12, 10), layers))


NETWORKS = {
    "bits to bits": bits_to_bits_network,
    "real": real_network,
    "clamp": clamp_network,
    "map": map_network,
    "block": lambda: block_network(stem_pool=True),
    "compact": compact_network,
    "random": lambda: random_network(6, PLAIN),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_file_computes_what_the_engine_computes(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    report = export(network, "openvino", tmp_path / "m.xml")
    assert report.data["difference"] < 1e-5
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(tmp_path / "m.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    images = np.random.default_rng(9).normal(size=(4, *network.input_shape)).astype(np.float32)
    images[0, :, :2] = 0.0  # sign(0) is +1
    found = np.concatenate([compiled(image[None])[0] for image in images])
    expected = Engine(network)(images)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    kinds = [node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ops()]
    n_binary = sum(layer.op == "binary_conv" for layer in network.layers)
    assert kinds.count("BinaryConvolution") == n_binary


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"n_in": 12},
            r"a \(binary_conv\): it has 12 input channels, .* want a multiple of 8\. --to onnx can",
        ),
        ({"n_in": 16, "groups": 2}, r"a \(binary_conv\): it has 2 groups, .* want one group\. --to onnx can"),
    ],
)
def test_what_its_kernels_cannot_do_is_refused(options: dict[str, int], reason: str, tmp_path: Path) -> None:
    n_in = options.pop("n_in")
    conv = binary_conv("a", "s", n_in, 8, (3, 3), **options)
    layers = (Layer("sign", "s", ("input",)), conv, Layer("global_avg_pool", "mean", ("a",)))
    with pytest.raises(ExportError, match=reason):
        export(checked(Network((n_in, 4, 4), layers)), "openvino", tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_told_with_the_line_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ExportError, match="pip install openvino"):
        export(block_network(), "openvino", tmp_path / "m.xml")


def test_only_xml(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"a \.xml file with a \.bin file beside it"):
        export(block_network(), "openvino", tmp_path / "m.onnx")
