"""What a target cannot express is refused by module, op and target, with the targets that can."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from export_networks import map_network
from lbit_networks import block_network

from latentbit.export import ExportError, Target, export, find, names
from latentbit.export.parts.target import refuse_unknown
from latentbit.lbit import Layer


class Sketch(Target):
    """Knows three ops, and writes down the order of calls."""

    def op_conv(self, layer: Layer, x: Any) -> str:
        return f"conv({x})"

    def op_sign(self, layer: Layer, x: Any) -> str:
        return f"sign({x})"

    def op_add(self, layer: Layer, a: Any, b: Any) -> str:
        return f"add({a}, {b})"


def test_a_walk_hands_each_layer_what_its_inputs_became() -> None:
    network = block_network()
    layers = network.layers[:2] + (Layer("add", "last", ("block.sign", "stem")),)
    assert Sketch(dataclasses.replace(network, layers=layers)).walk("x") == "add(sign(conv(x)), conv(x))"


def test_an_unknown_op_names_module_op_and_targets() -> None:
    targets = [Sketch, find("c")]
    with pytest.raises(
        ExportError, match=r"block: --to test_target has no counterpart of 'binary_conv'; .* can: c\."
    ):
        refuse_unknown(block_network(), Sketch, targets)


@pytest.mark.parametrize("target", names())
def test_every_target_refuses_an_op_of_tomorrow(target: str, tmp_path: Path) -> None:
    network = block_network()
    odd = dataclasses.replace(network.layers[-1], op="wavelet", name="head.wavelet")
    network = dataclasses.replace(network, layers=(*network.layers[:-1], odd))
    with pytest.raises(
        ExportError, match=f"head.wavelet: --to {target} has no counterpart of 'wavelet'; no other"
    ):
        export(network, target, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["c", "html"])
def test_an_output_map_is_refused_by_name(target: str, tmp_path: Path) -> None:
    with pytest.raises(
        ExportError, match=r"head: its output is a map \[2, 4, 5\].* can: onnx, openvino, qonnx"
    ):
        export(map_network(), target, tmp_path / "x")


def test_an_unknown_target_is_told_with_the_nearest() -> None:
    with pytest.raises(ExportError, match="no target 'onyx', did you mean 'onnx'"):
        find("onyx")
