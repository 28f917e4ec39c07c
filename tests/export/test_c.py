"""Exported C computes what the engine's portable kernels compute, bit for bit, and compiles without a warning."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_targets import TARGETS, run_c
from export_networks import clamp_network, doubles_network, geometry_network, real_network
from lbit_examples import every_op
from lbit_networks import PLAIN, block_network, compact_network, random_network

from latentbit.engine import Engine
from latentbit.export import ExportError, export
from latentbit.lbit import Layer, Network, checked, write


def images_of(network: Network, n: int = 2) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, *network.input_shape)).astype(np.float32)


def same_as_engine(network: Network, folder: Path, target: str = "host") -> None:
    images = images_of(network)
    found = run_c(network, images, folder, target)
    expected = Engine(network, isa="scalar")(images)
    np.testing.assert_array_equal(found.logits, expected)
    assert found.classes == expected.argmax(axis=1).tolist()


NETWORKS = {
    "geometry": geometry_network,
    "real": real_network,
    "clamp": clamp_network,
    "doubles": doubles_network,
    "every op": every_op,
    "block": block_network,
    "one word": lambda: block_network(stem_pool=True, channels=32),
    "random": lambda: random_network(3, PLAIN),
    "random wide": lambda: random_network(7, PLAIN),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_host_is_bit_for_bit_the_engine(name: str, tmp_path: Path) -> None:
    same_as_engine(NETWORKS[name](), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int, tmp_path: Path) -> None:
    same_as_engine(random_network(seed, PLAIN), tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_microcontrollers(target: str, tmp_path: Path) -> None:
    """The digits network with random weights: rows of bits in parts of words and in whole words, many borders."""
    if target not in os.environ.get("LATENTBIT_MCU", "").split():
        pytest.skip("run by make test-mcu")
    assert not TARGETS[target].missing
    same_as_engine(compact_network(), tmp_path, target)


def test_microcontrollers_example_project(tmp_path: Path) -> None:
    """examples/mcu as a user runs it, with images of its own."""
    if "m4" not in os.environ.get("LATENTBIT_MCU", "").split():
        pytest.skip("run by make test-mcu")
    network = compact_network()
    project = tmp_path / "mcu"
    shutil.copytree(
        Path(__file__).parents[2] / "examples" / "mcu", project, ignore=shutil.ignore_patterns("net", "*.elf")
    )
    write(network, project / "model.lbit")
    pixels = np.random.default_rng(2).integers(0, 256, (3, *network.input_shape)).astype(np.uint8)
    found = Engine(network, isa="scalar")(pixels, "nchw").argmax(axis=1)
    (project / "images.bin").write_bytes(
        b"".join(bytes([c]) + p.tobytes() for c, p in zip(found, pixels, strict=True))
    )
    latentbit = f"{sys.executable} -m latentbit"
    command = ["make", "-s", "-o", "images.bin", f"LATENTBIT={latentbit}", "TARGET=m4", "run"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
    assert "3 of 3 right" in done.stdout + done.stderr, done.stdout + done.stderr


def test_bytes_are_normalised_as_in_the_engine(tmp_path: Path) -> None:
    network = every_op()
    pixels = np.random.default_rng(2).integers(0, 256, (2, *network.input_shape)).astype(np.uint8)
    found = run_c(network, pixels, tmp_path, input="u8")
    np.testing.assert_array_equal(found.logits, Engine(network, isa="scalar")(pixels, "nchw"))


def test_report_and_limit_of_ram(tmp_path: Path) -> None:
    network = block_network()
    report = export(network, "c", tmp_path / "a")
    # 16 channels of 8 x 8 floats, their signs, the pooled map and its scratch: what is live at the shortcut.
    assert report.data["ram"] == 4 * (16 * 64 + 64 + 16 * 16 + 16)
    assert report.data["binary_macs"] == 32 * 16 * 9 * 16
    with pytest.raises(
        ExportError, match=r"--ram 4k: .* 5,440 bytes of RAM, 1,344 too many.* shortcut \(max_pool"
    ):
        export(network, "c", tmp_path / "b", ram="4k")
    assert not (tmp_path / "b").exists()
    assert export(network, "c", tmp_path / "c", ram="6kB").data["ram"] == report.data["ram"]


def test_names_in_a_file_cannot_become_code(tmp_path: Path) -> None:
    network = block_network()
    layers = tuple(
        Layer(layer.op, _evil(layer.name), tuple(map(_evil, layer.inputs)), layer.attributes, layer.tensors)
        for layer in network.layers
    )
    classes = tuple(f'"; int x{i} = 1; //\\?\u00fc' for i in range(network.n_outputs))
    same_as_engine(checked(Network(network.input_shape, layers, classes)), tmp_path)


def _evil(name: str) -> str:
    return name if name == "input" else f"{name} */ int 2bad; /* ??/"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"input": "f16"}, "--input f16: choose f32"),
        ({"ram": "lots"}, "--ram lots: give bytes"),
        ({"name": "2nd net"}, "--name 2nd net: choose a C identifier"),
        ({"weights": "float"}, "--to c has no option --weights"),
    ],
)
def test_refusals(options: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=reason):
        export(block_network(), "c", tmp_path, **options)


def test_other_prefix(tmp_path: Path) -> None:
    report = export(block_network(), "c", tmp_path, name="digits")
    assert [path.name for path in report.files] == ["digits.h", "digits.c"]
    header = (tmp_path / "digits.h").read_text()
    assert "void digits_run(const float image[DIGITS_INPUTS]" in header and "NET" not in header
