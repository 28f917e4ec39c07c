"""Each op's rules: the shape it gives agrees with the oracle, and what breaks a rule is refused by name."""

import dataclasses
from collections.abc import Callable
from typing import Any

import lbit_examples
import lbit_oracle
import numpy as np
import pytest

from latentbit.lbit import Layer, Network, PackedFileError, checked
from latentbit.lbit.core import OPS

OPS_OF_VERSION_2 = {op for op, version in OPS.items() if version == "2"}


def _edited(of: str, /, tensors: dict | None = None, drop: str = "", **changes: Any) -> Network:
    """every_op, or version_2 if that has the layer, with one layer changed: attributes, tensors, op, name, inputs."""
    network = lbit_examples.every_op()
    if of not in {layer.name for layer in network.layers}:
        network = lbit_examples.version_2()
    layers = []
    for layer in network.layers:
        if layer.name == of:
            fields = {key: changes.pop(key) for key in ("op", "inputs", "name") if key in changes}
            attributes = {k: v for k, v in {**layer.attributes, **changes}.items() if k != drop}
            mine = {k: v for k, v in {**layer.tensors, **(tensors or {})}.items() if k != drop}
            layer = dataclasses.replace(layer, attributes=attributes, tensors=mine, **fields)
        layers.append(layer)
    return dataclasses.replace(network, layers=tuple(layers))


def _changed(name: str, role: str, at: int, value: float) -> dict[str, np.ndarray]:
    array = lbit_examples.every_op()[name].tensors[role].copy()
    array.flat[at] = value
    return {role: array}


def test_the_example_has_every_op() -> None:
    old, new = (
        {layer.op for layer in make().layers} for make in (lbit_examples.every_op, lbit_examples.version_2)
    )
    assert old | new | {"flatten"} == set(OPS)
    assert not old & OPS_OF_VERSION_2 and new >= OPS_OF_VERSION_2


@pytest.mark.parametrize("make", [lbit_examples.every_op, lbit_examples.version_2])
def test_shapes_and_kinds_agree_with_the_oracle(make: Callable[[], Network]) -> None:
    network = make()
    values = lbit_oracle.values(network, np.random.default_rng(0).normal(size=(2, 3, 6, 6)))
    for layer in network.layers:
        assert values[layer.name].shape == (2, *layer.shape)
        assert layer.bits == (set(np.unique(values[layer.name])) <= {-1, 1})


@pytest.mark.parametrize("size", [(5, 7), (8, 8), (9, 4)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 0, 2, 1)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
def test_window_arithmetic(size: tuple, stride: tuple, padding: tuple, dilation: tuple) -> None:
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 1}
    tensors = {"weight": np.ones((1, 1, 2, 3), np.float32), "bias": np.zeros(1, np.float32)}
    layers = (Layer("conv", "c", ("input",), attributes, tensors), Layer("global_avg_pool", "g", ("c",)))
    network = checked(Network((1, *size), layers))
    values = lbit_oracle.values(network, np.ones((1, 1, *size)))
    assert values["c"].shape[1:] == network["c"].shape


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (_edited("stem", op="gelu"), "'stem': unknown op 'gelu'"),
        (_edited("stem", inputs=("nowhere",)), "'stem': its input 'nowhere'"),
        (_edited("stem", inputs=("clip",)), "'stem': its input 'clip' is no earlier layer"),
        (_edited("stem", inputs=()), "0 inputs"),
        (_edited("clip", inputs=("norm", "norm")), "takes 1 input, has 2"),
        (_edited("clip", name="stem"), "'stem': the name is taken"),
        (_edited("clip", name="input"), "'input': the name is taken"),
        (_edited("clip", name="\x1b[2J"), "printable"),
        (_edited("clip", name=""), "printable"),
        (_edited("clip", name="x" * 201), "printable"),
        (_edited("b", inputs=("norm",)), "'b' .binary_conv.: its input must be bits, 'norm' is not"),
        (_edited("act", inputs=("a",)), "'act' .prelu.: its input must be real"),
        (_edited("sum", inputs=("b", "a")), "'sum' .add."),
        (_edited("sum", inputs=("b",)), "'sum' .add."),
        (_edited("sum", inputs=("b", "input")), "'sum' .add."),
        (_edited("join", inputs=("pool", "act")), "'join' .concat."),
        (_edited("join", inputs=("pool",)), "'join' .concat."),
        (_edited("hidden", inputs=("relu",)), "must be a vector"),
        (_edited("average", inputs=("average",)), "'average' is no earlier layer"),
        (_edited("stem", stride=[0, 1]), "stride"),
        (_edited("stem", stride=[1]), "stride must list 2 integers"),
        (_edited("stem", stride=[1, True]), "stride"),
        (_edited("stem", stride=[1, 2**40]), "stride"),
        (_edited("stem", padding=[9, 9, 9, 9]), "larger than the kernel"),
        (_edited("stem", dilation=[9, 9]), "extends over"),
        (_edited("stem", dilation=[2**20, 2**20]), "extends over"),
        (_edited("stem", groups=2), "groups 2 does not divide"),
        (_edited("stem", groups=3), "does not fit 3 input channels"),
        (_edited("stem", drop="groups"), "groups"),
        (_edited("stem", bias_too=1), "'bias_too', which the op does not know"),
        (_edited("stem", drop="bias"), "tensor 'bias' is missing"),
        (_edited("stem", tensors={"extra": np.ones(1, np.float32)}), "'extra', which the op does not know"),
        (_edited("stem", tensors=_changed("stem", "weight", 3, np.nan)), "NaN"),
        (_edited("stem", tensors=_changed("stem", "bias", 0, np.inf)), "infinity"),
        (_edited("b", tensors=_changed("b", "scale", 0, np.nan)), "'b'.*'scale' holds NaN"),
        (_edited("b", tensors=_changed("b", "bits", 0, 64)), "tail 0"),
        (_edited("b", in_channels=5), "in_channels is 5, its input has 6"),
        (_edited("b", drop="scale"), "'scale' is missing"),
        (_edited("b", tensors={"scale": np.ones(6)}), "'scale' is float64"),
        (_edited("b", tensors={"scale": np.ones(5, np.float32)}), "shape \\[5\\]"),
        (_edited("a", tensors=_changed("a", "threshold", 0, 56)), "threshold"),
        (_edited("a", tensors=_changed("a", "flip", 0, 2)), "flip"),
        (_edited("a", drop="flip"), "'flip' is missing"),
        (_edited("a", tensors={"scale": np.ones(6, np.float32)}), "'scale', which the op does not know"),
        (_edited("c.sign", tensors=_changed("c.sign", "threshold", 0, -np.inf)), "infinity"),
        (_edited("mean", count_include_pad=1), "count_include_pad"),
        (_edited("pool", padding=[2, 0, 0, 0]), "see no value"),
        (_edited("pool", padding=[0, 0, 2, 2]), "see no value"),
        (_edited("fc", in_features=6), "in_features is 6"),
        (_edited("stem", tensors={"weight": np.ones((6, 3, 3, 3), np.int8)}), "'weight_scale' is missing"),
        (_edited("relu6", high=-1), "'relu6' .clamp.: low is more than high"),
        (_edited("relu6", high=1e39), "high must be a number that float32 holds"),
        (_edited("relu6", high=True), "high must be a number"),
        (_edited("relu6", drop="low"), "low must be a number"),
        (_edited("silu", inputs=("b.sign",)), "no earlier layer"),
        (_edited("four", size=[4, 0]), "size"),
        (_edited("four", inputs=("silu", "silu")), "takes 1 input"),
        (_edited("up", size=[6]), "size must list 2 integers"),
        (_edited("up", groups=4), "groups 4 does not divide"),
        (_edited("up", groups=1), "does not fit 6 input channels"),
        (_edited("up", padding=[-1, 0]), "padding"),
        (_edited("up", padding=[0, 0, 0, 0]), "padding must list 2 integers"),
        (_edited("pixel", size=[6, 1, 2]), "cannot make .6, 1, 2. of .6."),
        (_edited("turned", order=[0, 1, 1]), "order .0, 1, 1. is no order"),
        (_edited("gated", inputs=("gate", "up")), "'gated' .multiply.: takes 2 real inputs"),
        (_edited("gated", inputs=("up", "four")), "'gated' .multiply.: takes 2 real inputs"),
        (_edited("gated", inputs=("up",)), "'gated' .multiply.: takes 2 real inputs"),
        (_edited("out", tensors={"row": np.array([0, 6], np.int32)}), "shape .5., expected .2."),
        (_edited("out", tensors={"row": np.array([0, 1, 2, 3, 6], np.int32)}), "'row' leaves .0, 5."),
        (_edited("out", tensors={"row": np.array([0, 1, 2, 3, -1], np.int32)}), "'row' leaves .0, 5."),
        (_edited("out", tensors={"column_share": np.full(6, 1.5, np.float32)}), "leaves .0, 1."),
        (_edited("out", tensors={"column_share": np.full(6, np.nan, np.float32)}), "NaN"),
        (
            _edited(
                "stem",
                tensors={
                    "weight": np.full((6, 3, 3, 3), -128, np.int8),
                    "weight_scale": np.full(6, 3e36, np.float32),
                },
            ),
            "'weight' times 'weight_scale' is more than float32 holds",
        ),
    ],
)
def test_broken_rules(network: Network, reason: str) -> None:
    with pytest.raises(PackedFileError, match=reason):
        checked(network)


def test_float16_and_int8_weights_are_possible() -> None:
    weight = lbit_examples.every_op()["stem"].tensors["weight"]
    assert checked(_edited("stem", tensors={"weight": weight.astype(np.float16)}))
    scaled = {"weight": weight.astype(np.int8), "weight_scale": np.ones(6, np.float32)}
    assert checked(_edited("stem", tensors=scaled))


@pytest.mark.parametrize(
    ("size", "layer", "reason"),
    [
        ((1, 2**14 + 1, 2**14), Layer("relu", "x", ("input",)), "input .* numbers, more than"),
        ((2**20, 2**20, 2**20), Layer("relu", "x", ("input",)), "input .* numbers, more than"),
        ((10**20, 10**20, 1), Layer("relu", "x", ("input",)), "input .* each from 1 to"),
        ((10**4000, 10**4000, 1), Layer("relu", "x", ("input",)), "the number 1000.* has 4001 digits"),
        ((1, 2**14, 2**14), Layer("relu", "x", ("input",)), "'g' .*: values and weights .* bytes, more"),
        (
            (2**20, 2, 2),
            Layer(
                "max_pool", "x", ("input",), {"kernel": [2**20] * 2, "stride": [1, 1], "padding": [2**19] * 4}
            ),
            "'x' .max_pool.: its padded input is .* numbers, more than",
        ),
    ],
)
def test_memory_bombs(size: tuple[int, int, int], layer: Layer, reason: str) -> None:
    with pytest.raises(PackedFileError, match=reason):
        checked(Network(size, (layer, Layer("global_avg_pool", "g", ("x",)))))


def test_doubling_by_concat_is_bounded() -> None:
    layers = [Layer("concat", "0", ("input", "input"))]
    layers += [Layer("concat", str(i), (str(i - 1), str(i - 1))) for i in range(1, 60)]
    with pytest.raises(PackedFileError, match="layer '2[0-9]' .concat.: .* more than"):
        checked(Network((1, 1, 1), tuple(layers)))


def test_work_is_bounded() -> None:
    pool = {"kernel": [4096, 4096], "stride": [1, 1], "padding": [2048, 2048, 2048, 2048]}
    layers = (Layer("max_pool", "p", ("input",), pool), Layer("global_avg_pool", "g", ("p",)))
    with pytest.raises(PackedFileError, match="products, more than"):
        checked(Network((1, 4096, 4096), layers))
