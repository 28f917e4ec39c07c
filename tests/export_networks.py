"""Networks of awkward layers for the tests of exporters."""

import numpy as np
from lbit_networks import HALVE, SAME, normal

from latentbit.lbit import Layer, Network, checked, pack_signs


def binary_conv(
    name: str, source: str, n_in: int, n_out: int, kernel: tuple[int, int], **geometry: object
) -> Layer:
    rng = np.random.default_rng(n_in + n_out)
    groups = geometry.get("groups", 1)
    assert isinstance(groups, int)
    attributes = SAME | {"in_channels": n_in} | geometry
    bits = pack_signs(normal(rng, n_out, *kernel, n_in // groups))
    if geometry.pop("bits", False):
        attributes.pop("bits")
        n = n_in // groups * kernel[0] * kernel[1]
        tensors = {
            "threshold": rng.integers(-n // 4, n // 4, n_out).astype(np.int32),
            "flip": rng.integers(0, 2, n_out).astype(np.uint8),
        }
    else:
        tensors = {"scale": normal(rng, n_out), "bias": normal(rng, n_out)}
    return Layer("binary_conv", name, (source,), attributes, {"bits": bits} | tensors)


def geometry_network() -> Network:
    """Widths in words, in parts of words and over words; strides, gaps, groups, padding on one side only."""
    rng = np.random.default_rng(0)
    linear = {"weight": normal(rng, 5, 3), "bias": normal(rng, 5)}
    layers = (
        Layer("sign", "s", ("input",), {}, {"threshold": normal(rng, 6)}),
        binary_conv("a", "s", 6, 64, (3, 3), bits=True),
        binary_conv("b", "a", 64, 70, (3, 2), padding=[1, 0, 0, 1], bits=True),
        binary_conv("c", "b", 70, 96, (3, 3), stride=[2, 1], padding=[2, 1, 0, 1], bits=True),
        binary_conv("d", "c", 96, 64, (3, 3), groups=3 - 1, dilation=[2, 2], padding=[2, 2, 2, 2], bits=True),
        binary_conv("e", "d", 64, 64, (3, 3), groups=2, dilation=[1, 2], padding=[1, 2, 1, 2], bits=True),
        binary_conv("f", "e", 64, 40, (1, 1), padding=[0, 0, 0, 0], bits=True),
        binary_conv("g", "f", 40, 20, (3, 3), groups=4, stride=[1, 2]),
        Layer("sign", "g.sign", ("g",)),
        binary_conv("h", "g.sign", 20, 20, (3, 3), groups=20, bits=True),
        binary_conv("i", "h", 20, 3, (5, 3), padding=[2, 1, 2, 1]),
        Layer("global_avg_pool", "pool", ("i",)),
        Layer("linear", "fc", ("pool",), {}, linear),
    )
    return checked(Network((6, 9, 8), layers))


def real_network() -> Network:
    """Real convolutions in groups, with gaps and 8-bit weights, pools of all kinds, flatten, additions of all kinds."""
    rng = np.random.default_rng(3)
    int8 = {
        "weight": rng.integers(-127, 128, (6, 6, 3, 3)).astype(np.int8),
        "weight_scale": np.abs(normal(rng, 6)) * np.float32(0.01),
        "bias": normal(rng, 6),
    }
    half = {"weight": normal(rng, 6, 2, 2, 3).astype(np.float16), "bias": normal(rng, 6)}
    pad = {"kernel": [3, 3], "stride": [2, 2], "padding": [1, 1, 1, 1]}
    layers = (
        Layer("conv", "a", ("input",), SAME | {"groups": 1, "dilation": [2, 1], "padding": [2, 1, 2, 1]}, int8),
        Layer("conv", "b", ("a",), SAME | {"groups": 3, "padding": [1, 1, 0, 1]}, half),
        Layer("add", "twice", ("b", "b")),
        Layer("add", "image", ("twice", "input")),
        Layer("relu", "relu", ("image",)),
        Layer("avg_pool", "mean", ("relu",), pad | {"count_include_pad": True}),
        Layer("avg_pool", "mean2", ("relu",), pad | {"count_include_pad": False}),
        Layer("max_pool", "max", ("relu",), pad),
        Layer("concat", "cat", ("mean", "mean2", "max")),
        Layer("concat", "double", ("mean", "mean")),
        Layer("concat", "double2", ("max", "max")),
        Layer("add", "doubles", ("double", "double2")),
        Layer("concat", "all", ("cat", "doubles")),
        Layer("hardtanh", "clip", ("all",)),
        Layer("sign", "s", ("clip",)),
        Layer("max_pool", "bits", ("s",), HALVE),
        Layer("flatten", "flat", ("bits",)),
        Layer(
            "binary_linear", "fc", ("flat",), {"in_features": 120},
            {"bits": pack_signs(normal(rng, 7, 120)), "scale": normal(rng, 7), "bias": normal(rng, 7)},
        ),
    )  # fmt: skip
    return checked(Network((6, 8, 7), layers))


def gated_network() -> Network:
    """The ops of version 2 that work value by value: a gate as in squeeze-and-excitation."""
    rng = np.random.default_rng(4)
    point = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1}
    conv = {"weight": normal(rng, 8, 8, 1, 1), "bias": normal(rng, 8)}
    layers = (
        Layer("conv", "a", ("input",), point, {"weight": normal(rng, 8, 3, 1, 1), "bias": normal(rng, 8)}),
        Layer("hard_swish", "b", ("a",)),
        Layer("global_avg_pool", "mean", ("b",)),
        Layer("reshape", "pixel", ("mean",), {"size": [8, 1, 1]}),
        Layer("conv", "squeeze", ("pixel",), point, conv),
        Layer("silu", "silu", ("squeeze",)),
        Layer("hard_sigmoid", "gate", ("silu",)),
        Layer("multiply", "gated", ("b", "gate")),
        Layer("sigmoid", "soft", ("gated",)),
        Layer("permute", "turned", ("soft",), {"order": [0, 2, 1]}),
        Layer("clamp", "clip", ("turned",), {"low": 0.25, "high": 0.625}),
        Layer("flatten", "flat", ("clip",)),
        Layer("linear", "fc", ("flat",), {}, {"weight": normal(rng, 3, 8 * 20), "bias": normal(rng, 3)}),
    )
    return checked(Network((3, 4, 5), layers))


def clamp_network() -> Network:
    """A clamp after an addition, and one by itself."""
    rng = np.random.default_rng(5)
    layers = (
        Layer("conv", "a", ("input",), SAME, {"weight": normal(rng, 8, 3, 3, 3), "bias": normal(rng, 8)}),
        Layer("sign", "s", ("a",)),
        binary_conv("b", "s", 8, 8, (3, 3)),
        Layer("add", "sum", ("b", "a")),
        Layer("clamp", "six", ("sum",), {"low": 0.0, "high": 6.0}),
        Layer("sign", "t", ("six",), {}, {"threshold": np.full(8, 1.5, np.float32)}),
        binary_conv("c", "t", 8, 8, (3, 3)),
        Layer("add", "sum2", ("c", "six")),
        Layer("clamp", "again", ("six",), {"low": 0.1, "high": 0.3}),
        Layer("add", "sum3", ("sum2", "again")),
        Layer("global_avg_pool", "mean", ("sum3",)),
    )
    return checked(Network((3, 6, 6), layers))


def map_network() -> Network:
    """Logits for every pixel."""
    rng = np.random.default_rng(6)
    layers = (
        Layer("conv", "head", ("input",), SAME, {"weight": normal(rng, 2, 3, 3, 3), "bias": normal(rng, 2)}),
    )
    return checked(Network((3, 4, 5), layers))


def doubles_network() -> Network:
    """Two maps, each twice side by side, and their sum."""
    rng = np.random.default_rng(5)
    weight = {"weight": normal(rng, 4, 3, 3, 3), "bias": normal(rng, 4)}
    layers = (
        Layer("conv", "a", ("input",), SAME, weight),
        Layer("hardtanh", "b", ("a",)),
        Layer("concat", "aa", ("a", "a")),
        Layer("concat", "bb", ("b", "b")),
        Layer("add", "sum", ("aa", "bb")),
        Layer("global_avg_pool", "pool", ("sum",)),
    )
    return checked(Network((3, 4, 4), layers))
