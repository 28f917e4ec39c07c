"""Small networks for the tests of packed files: one with every op, one whose bytes fit a screen."""

import numpy as np

from latentbit.lbit import Layer, Network, checked, n_words, pack_signs

SLIDE = {"stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1}


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tiny() -> Network:
    """Two pixels -> flatten -> sign -> three binary outputs."""
    signs = np.array([[1, -1], [-1, -1], [1, 1]])
    scale, bias = np.array([0.5, 1, 2], np.float32), np.array([0, -1, 0.25], np.float32)
    return checked(
        Network(
            (1, 1, 2),
            (
                Layer("flatten", "flatten", ("input",)),
                Layer("sign", "fc.sign", ("flatten",)),
                Layer(
                    "binary_linear",
                    "fc",
                    ("fc.sign",),
                    {"in_features": 2},
                    {"bits": pack_signs(signs), "scale": scale, "bias": bias},
                ),
            ),
            classes=("a", "b", "c"),
            mean=(0.5,),
            std=(0.25,),
        )
    )


def version_2() -> Network:
    """Every op that came with version 2, on 3x6x6 images; the output is a map."""
    c = 6
    places = {"row": np.array([0, 0, 1, 3, 5], np.int32), "column": np.arange(6, dtype=np.int32)}
    places |= {
        "row_share": np.array([0, 0.5, 0.25, 1, 1], np.float32),
        "column_share": _random(0, 6) ** 2 % 1,
    }
    up = SLIDE | {"stride": [2, 1], "padding": [1, 0], "size": [6, 6], "groups": 2}
    one = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1}
    layers = (
        Layer("conv", "stem", ("input",), SLIDE, {"weight": _random(1, c, 3, 3, 3), "bias": _random(2, c)}),
        Layer("clamp", "relu6", ("stem",), {"low": 0, "high": 6.0}),
        Layer("silu", "silu", ("stem",)),
        Layer("hard_swish", "swish", ("relu6",)),
        Layer("adaptive_avg_pool", "four", ("swish",), {"size": [4, 4]}),
        Layer(
            "conv_transpose", "up", ("four",), up, {"weight": _random(3, c, 3, 2, 3), "bias": _random(4, c)}
        ),
        Layer("global_avg_pool", "squeeze", ("up",)),
        Layer("reshape", "pixel", ("squeeze",), {"size": [c, 1, 1]}),
        Layer("conv", "excite", ("pixel",), one, {"weight": _random(5, c, c, 1, 1), "bias": _random(6, c)}),
        Layer("sigmoid", "gate", ("excite",)),
        Layer("multiply", "gated", ("up", "gate")),
        Layer("multiply", "square", ("gated", "silu")),
        Layer("permute", "turned", ("square",), {"order": [2, 0, 1]}),
        Layer("hard_sigmoid", "hard", ("turned",)),
        Layer("sign", "b.sign", ("turned",), {}, {"threshold": _random(7, c)}),
        Layer(
            "binary_conv",
            "b",
            ("b.sign",),
            SLIDE | {"in_channels": c},
            {
                "bits": pack_signs(np.sign(_random(8, c, 3, 3, c))),
                "scale": _random(9, c),
                "bias": _random(10, c),
            },
        ),
        Layer("add", "sum", ("b", "hard")),
        Layer("resize", "out", ("sum",), {}, places),
    )
    return checked(Network((3, 6, 6), layers, classes=tuple("abcdef")))


def every_op(channels: int = 6) -> Network:
    """Every op of the format at least once, in both kinds where it has two, on 3x6x6 images."""
    c = channels
    words = n_words(c)
    stem = {"weight": _random(0, c, 3, 3, 3), "bias": _random(1, c)}
    signs = np.sign(_random(2, c, 3, 3, c))
    thresholds = {"threshold": np.arange(c, dtype=np.int32) - 2, "flip": (np.arange(c) % 2).astype(np.uint8)}
    pointwise = np.sign(_random(5, 2 * c, 1, 1, c // 2))
    pool = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0, 0, 0]}
    per_channel = {"scale": _random(3, c), "bias": _random(4, c)}
    assert pack_signs(signs).shape[-1] == words
    layers = (
        Layer("conv", "stem", ("input",), SLIDE, stem),
        Layer("affine", "norm", ("stem",), {}, per_channel),
        Layer("hardtanh", "clip", ("norm",)),
        Layer("sign", "a.sign", ("clip",)),
        Layer(
            "binary_conv",
            "a",
            ("a.sign",),
            SLIDE | {"in_channels": c},
            {"bits": pack_signs(signs)} | thresholds,
        ),
        Layer(
            "binary_conv", "b", ("a",), SLIDE | {"in_channels": c}, {"bits": pack_signs(signs)} | per_channel
        ),
        Layer("add", "sum", ("b", "norm")),
        Layer("prelu", "act", ("sum",), {}, {"slope": _random(6, c)}),
        Layer("max_pool", "pool", ("act",), pool),
        Layer("avg_pool", "mean", ("act",), pool | {"count_include_pad": False}),
        Layer("sign", "c.sign", ("act",), {}, {"threshold": _random(7, c), "flip": thresholds["flip"]}),
        Layer("max_pool", "bits", ("c.sign",), pool),
        Layer(
            "binary_conv",
            "c",
            ("bits",),
            {"in_channels": c, "groups": 2, "stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1]},
            {"bits": pack_signs(pointwise), "scale": _random(8, 2 * c), "bias": _random(9, 2 * c)},
        ),
        Layer("concat", "join", ("pool", "mean")),
        Layer("add", "sum2", ("c", "join")),
        Layer("relu", "relu", ("sum2",)),
        Layer("global_avg_pool", "average", ("relu",)),
        Layer(
            "linear", "hidden", ("average",), {}, {"weight": _random(10, 5, 2 * c), "bias": _random(11, 5)}
        ),
        Layer("sign", "fc.sign", ("hidden",)),
        Layer(
            "binary_linear",
            "fc",
            ("fc.sign",),
            {"in_features": 5},
            {"bits": pack_signs(np.sign(_random(12, 4, 5))), "scale": _random(13, 4), "bias": _random(14, 4)},
        ),
    )
    return checked(Network((3, 6, 6), layers, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2), source={"seed": 0}))
