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
from latentbit.export.c import C
from latentbit.export.parts.c_rounding import halves, run
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


def as_simulated(network: Network, images: np.ndarray, folder: Path) -> np.ndarray:
    target = C(network)
    target.write(folder, real="16")
    kept = [step for step in target.plan.steps if step.real is not None and not step.wide]
    return run(target.plan, images, kept)[0]


@pytest.mark.parametrize("name", ["digits", "clamp", "doubles", "every op", "geometry"])
def test_16_bit_maps_are_what_the_export_measured(name: str, tmp_path: Path) -> None:
    """To the rounding of sums, which NumPy adds in another order; 16 bits are a thousand times as coarse."""
    network = compact_network() if name == "digits" else NETWORKS[name]()
    images = images_of(network)
    found, expected = (
        run_c(network, images, tmp_path, real="16").logits,
        as_simulated(network, images, tmp_path),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    if name not in ("every op", "doubles"):  # their logits come from few values
        assert np.abs(found - Engine(network, isa="scalar")(images)).max() > 2e-6 * np.abs(expected).max()


def test_16_bit_maps_are_the_halves_of_numpy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = (rng.normal(size=2000) * 2.0 ** rng.integers(-13, 15, 2000)).astype(np.float32)
    values = values[np.abs(values) >= 2.0**-14]
    ties = np.float32([1 + 2**-11, 1 + 3 * 2**-11, -2049, 2051, 65504, 65519, 2.0**-14])
    given = np.concatenate([values, ties, np.float32([0, -0.0, 65520, -1e30, np.inf, 6e-5, -1e-40])])
    expected = given.copy()
    expected[:-5] = given[:-5].astype(np.float16)
    expected[-5:] = [65504, -65504, 65504, 0, -0.0]
    np.testing.assert_array_equal(halves(given).view(np.uint32), expected.view(np.uint32))
    export(block_network(), "c", tmp_path, real="16")
    asked = ", ".join(f"{word:#x}u" for word in given.view(np.uint32))
    (tmp_path / "ask.c").write_text(
        f"""#include <stdio.h>
#include "net.c"
static const uint32_t asked[] = {{{asked}}};
int main(void)
{{
    for (unsigned i = 0; i < sizeof asked / 4; i++) {{
        union float_bits x;
        x.bits = asked[i];
        x.value = load(store(x.value));
        printf("%x\\n", (unsigned)x.bits);
    }}
}}
"""
    )
    program = tmp_path / "ask"
    subprocess.run(["cc", "-std=c99", "-O2", tmp_path / "ask.c", "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    assert [int(word, 16) for word in printed] == expected.view(np.uint32).tolist()


def test_microcontrollers_give_the_same_bits_with_16_bit_maps(tmp_path: Path) -> None:
    """The same bits as on this machine."""
    if "m4" not in os.environ.get("LATENTBIT_MCU", "").split():
        pytest.skip("run by make test-mcu")
    network = compact_network()
    images = images_of(network)
    found = run_c(network, images, tmp_path / "m4", "m4", real="16")
    np.testing.assert_array_equal(found.logits, run_c(network, images, tmp_path / "host", real="16").logits)


def test_16_bit_maps_halve_the_ram(tmp_path: Path) -> None:
    report = export(block_network(), "c", tmp_path, real="16")
    # As below with halves: the two maps. Signs and scratch stay.
    assert report.data["ram"] == 4 * (16 * 64 // 2 + 64 + 16 * 16 // 2 + 16)
    assert f"NET_ARENA_BYTES {report.data['ram']}\n" in (tmp_path / "net.h").read_text()
    assert 0 < report.data["mean_difference"] < report.data["difference"] < 1e-3
    assert report.data["changed_classes"] == 0 and "on 32 random images" in str(report)


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
        ExportError,
        match=r"--ram 4k: .* 5,440 bytes of RAM, 1,344 too many.* shortcut \(max_pool.*Try --real 16",
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
        ({"real": "8"}, "--real 8: choose 32"),
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
