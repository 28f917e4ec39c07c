"""The parity ladder: NumPy oracle == torch on +-1 tensors == every instruction set, integers exactly.

The native kernels are reached through the engine, on networks of one layer of interest.
"""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lbit_oracle
import numpy as np
import pytest
import torch
from torch.nn import functional

from latentbit import _native
from latentbit.engine import Engine, available
from latentbit.lbit import Layer, Network, checked, pack_signs, write


@pytest.fixture(params=available())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each instruction set this machine has, forced as a user would."""
    monkeypatch.setenv("LATENTBIT_ISA", request.param)
    yield request.param


def run(layers: list[Layer], images: np.ndarray, isa: str, threads: int = 1) -> tuple[np.ndarray, Network]:
    """What the last layer computes, and the network."""
    network = checked(Network(images.shape[1:], (*layers, Layer("flatten", "out", (layers[-1].name,)))))
    engine = Engine(network, threads=threads)
    assert engine.isa == isa
    return engine(images).reshape(len(images), *network.layers[-2].shape), network


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def binary_layer(
    rng: np.random.Generator, n_in: int, n_out: int, kernel: tuple[int, int], **geometry: object
) -> Layer:
    """A binary convolution whose real output is the dot product itself."""
    attributes = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1} | geometry
    signs = normal(rng, n_out, *kernel, n_in // attributes["groups"])
    identity = {"scale": np.ones(n_out, np.float32), "bias": np.zeros(n_out, np.float32)}
    tensors = {"bits": pack_signs(signs)} | identity
    return Layer("binary_conv", "conv", ("sign",), {"in_channels": n_in} | attributes, tensors)


def torch_dot(layer: Layer, images: np.ndarray) -> np.ndarray:
    groups = layer.attributes["groups"]
    n = layer.attributes["in_channels"] // groups
    weight = lbit_oracle.unpack_signs(layer.tensors["bits"], n).astype(np.float32).transpose(0, 3, 1, 2)
    top, left, bottom, right = layer.attributes["padding"]
    x = torch.from_numpy(np.where(images < 0, -1, 1).astype(np.float32))
    x = functional.pad(x, (left, right, top, bottom))
    stride, dilation = layer.attributes["stride"], layer.attributes["dilation"]
    return functional.conv2d(x, torch.from_numpy(weight.copy()), None, stride, 0, dilation, groups).numpy()


def check_dots(isa: str, layer: Layer, images: np.ndarray, threads: int = 1) -> None:
    found, network = run([Layer("sign", "sign", ("input",)), layer], images, isa, threads)
    oracle = lbit_oracle.values(network, images)["conv"]
    np.testing.assert_array_equal(found, oracle)
    np.testing.assert_array_equal(found, torch_dot(layer, images))


CHANNELS = [1, 3, 16, 63, 64, 65, 130, 256]


@pytest.mark.parametrize("n_in", CHANNELS)
@pytest.mark.parametrize("n_out", [1, 16, 33, 64, 65, 130])
def test_dot_products_are_exact_for_any_number_of_channels(isa: str, n_in: int, n_out: int) -> None:
    rng = np.random.default_rng(n_in * 1000 + n_out)
    layer = binary_layer(rng, n_in, n_out, (3, 3), padding=[1, 1, 1, 1])
    check_dots(isa, layer, normal(rng, 2, n_in, 5, 7))


GEOMETRIES = [
    {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    for kernel, stride, padding, dilation in itertools.chain(
        itertools.product(
            [(3, 3)], [[1, 1], [2, 2], [1, 3]], [[0] * 4, [1] * 4, [2, 0, 1, 3]], [[1, 1], [2, 2]]
        ),
        itertools.product(
            [(1, 1), (2, 3), (5, 5)], [[1, 1], [2, 1]], [[0] * 4, [1, 0, 0, 1]], [[1, 1], [1, 2]]
        ),
        [((7, 7), [2, 2], [3] * 4, [1, 1]), ((3, 3), [1, 1], [3] * 4, [1, 1])],
    )
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("side", [(9, 11), (12, 13)])
def test_dot_products_are_exact_for_any_window(isa: str, geometry: dict, side: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    kernel = geometry["kernel"]
    layer = binary_layer(rng, 36, 20, kernel, **{k: v for k, v in geometry.items() if k != "kernel"})
    check_dots(isa, layer, normal(rng, 1, 36, *side))


@pytest.mark.parametrize(("n_in", "n_out", "groups"), [(4, 4, 4), (6, 9, 3), (130, 6, 2), (192, 160, 2)])
def test_dot_products_are_exact_in_groups(isa: str, n_in: int, n_out: int, groups: int) -> None:
    rng = np.random.default_rng(2)
    layer = binary_layer(rng, n_in, n_out, (3, 3), padding=[1] * 4, groups=groups)
    check_dots(isa, layer, normal(rng, 2, n_in, 6, 5), threads=2)


@pytest.mark.parametrize("side", [1, 2, 3, 15, 16, 33])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bands_and_threads_cover_every_pixel_once(isa: str, side: int, threads: int) -> None:
    rng = np.random.default_rng(3)
    layer = binary_layer(rng, 64, 192, (3, 3), padding=[1] * 4)
    check_dots(isa, layer, normal(rng, 2, 64, side, side), threads)


@pytest.mark.parametrize("weights", [1, -1])
@pytest.mark.parametrize("inputs", [1, -1])
def test_all_alike_and_all_opposed_do_not_overflow(isa: str, weights: int, inputs: int) -> None:
    """The byte and 16-bit accumulators meet their largest values."""
    n_in = 512
    rng = np.random.default_rng(4)
    layer = binary_layer(rng, n_in, 64, (3, 3), padding=[1] * 4)
    layer.tensors["bits"][:] = pack_signs(np.full((64, 3, 3, n_in), weights))
    images = np.full((1, n_in, 4, 4), inputs, np.float32)
    check_dots(isa, layer, images)


@pytest.mark.parametrize("n_in", [20000, 32767, 32768, 70001])
def test_long_dot_products_stay_exact(isa: str, n_in: int) -> None:
    rng = np.random.default_rng(5)
    signs = np.sign(normal(rng, 3, n_in))
    identity = {"scale": np.ones(3, np.float32), "bias": np.zeros(3, np.float32)}
    layers = [
        Layer("flatten", "flat", ("input",)),
        Layer("sign", "sign", ("flat",)),
        Layer(
            "binary_linear", "fc", ("sign",), {"in_features": n_in}, {"bits": pack_signs(signs)} | identity
        ),
    ]
    images = np.concatenate([normal(rng, 1, 1, 1, n_in), signs[None, 1:2, None].astype(np.float32)])
    found = Engine(checked(Network((1, 1, n_in), tuple(layers))), isa=isa)(images)
    np.testing.assert_array_equal(found, np.where(images.reshape(2, -1) < 0, -1, 1) @ signs.T)
    assert found[1, 1] == n_in


def test_sign_follows_torch_on_zeros_and_nan(isa: str) -> None:
    """0, -0 and NaN count as +1; thresholds are strict; flip turns bits over."""
    values = np.array([0.0, -0.0, np.nan, 1e-45, -1e-45, np.inf, -np.inf, 0.5], np.float32)
    n = len(values)
    images = np.tile(values, 3)[None, :, None, None]
    threshold = np.concatenate([np.zeros(2 * n), np.full(n, 0.5)]).astype(np.float32)
    flip = np.concatenate([np.zeros(n), np.ones(n), np.zeros(n)]).astype(np.uint8)
    sign = Layer("sign", "sign", ("input",), {}, {"threshold": threshold, "flip": flip})
    one_hot = np.where(np.eye(3 * n) > 0, -1, 1)[:, None, None, :]
    layer = binary_layer(np.random.default_rng(0), 3 * n, 3 * n, (1, 1))
    layer.tensors["bits"][:] = pack_signs(one_hot)
    found, _ = run([sign, layer], images, isa)
    plain = np.where(values < 0, -1, 1)
    signs = np.concatenate([plain, -plain, np.where(values < 0.5, -1, 1)])
    np.testing.assert_array_equal(found.ravel(), one_hot[:, 0, 0] @ signs)


@pytest.mark.parametrize("n_out", [5, 16, 64, 130])
def test_integer_thresholds_give_bits(isa: str, n_out: int) -> None:
    rng = np.random.default_rng(6)
    first = binary_layer(rng, 65, n_out, (3, 3), padding=[1] * 4)
    limits = rng.integers(-40, 40, n_out).astype(np.int32)
    tensors = {
        "bits": first.tensors["bits"],
        "threshold": limits,
        "flip": rng.integers(0, 2, n_out).astype(np.uint8),
    }
    hidden = Layer("binary_conv", "hidden", ("sign",), first.attributes, tensors)
    last = binary_layer(rng, n_out, 7, (3, 3), padding=[1] * 4)
    last = Layer(last.op, "conv", ("hidden",), last.attributes, last.tensors)
    images = normal(rng, 2, 65, 6, 7)
    found, network = run([Layer("sign", "sign", ("input",)), hidden, last], images, isa)
    np.testing.assert_array_equal(found, lbit_oracle.values(network, images)["conv"])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("n_in", "n_out"), [(2, 2), (4, 16), (6, 70)])
@pytest.mark.parametrize(
    "geometry",
    [
        ((3, 3), [1, 1], [1] * 4, [1, 1]),
        ((7, 7), [2, 2], [3] * 4, [1, 1]),
        ((3, 2), [2, 1], [2, 0, 1, 1], [1, 2]),
        ((1, 1), [1, 1], [0] * 4, [1, 1]),
    ],
    ids=str,
)
def test_real_convolution(isa: str, groups: int, n_in: int, n_out: int, geometry: tuple) -> None:
    rng = np.random.default_rng(7)
    kernel, stride, padding, dilation = geometry
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    tensors = {"weight": normal(rng, n_out, n_in // groups, *kernel), "bias": normal(rng, n_out)}
    images = normal(rng, 2, n_in, 9, 13)
    layer = Layer("conv", "conv", ("input",), attributes, tensors)
    found, network = run([layer], images, isa, threads=2)
    oracle = lbit_oracle.values(network, images)["conv"]
    np.testing.assert_allclose(found, oracle, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [140_000, 200_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_tall_maps_do_not_overflow(isa: str, rows: int, threads: int) -> None:
    """rows * segments exceeds 32 bits here; heap corruption once."""
    rng = np.random.default_rng(10)
    attributes = {"stride": [1, 1], "padding": [0] * 4, "dilation": [1, 1], "groups": 1}
    tensors = {"weight": np.full((1, 1, 1, 1), 2, np.float32), "bias": np.ones(1, np.float32)}
    images = rng.integers(-3, 4, (1, 1, rows, 1)).astype(np.float32)  # sums of integers: exact in any order
    layers = [Layer("conv", "conv", ("input",), attributes, tensors)]
    found, _ = run(layers, images, isa, threads)
    np.testing.assert_array_equal(found, 2 * images + 1)
    layers.append(Layer("global_avg_pool", "g", ("conv",)))
    mean = Engine(checked(Network((1, rows, 1), tuple(layers))), isa=isa, threads=threads)(images)
    np.testing.assert_allclose(mean, (2 * images + 1).mean((2, 3)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(70_000, 2), (2, 70_000)])
def test_large_maps_of_bits_and_pools(isa: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(11)
    layer = binary_layer(rng, 3, 2, (3, 3), padding=[1] * 4)
    images = normal(rng, 1, 3, *shape)
    check_dots(isa, layer, images, threads=2)
    window = {"kernel": [2, 2], "stride": [1, 1], "padding": [0] * 4}
    found, network = run([Layer("max_pool", "pool", ("input",), window)], images, isa, threads=2)
    np.testing.assert_array_equal(found, lbit_oracle.values(network, images, np.float32)["pool"])


WIDE = [
    *itertools.product(
        [(3, 449), (4, 450), (5, 1000)],
        [
            ((3, 3), [1, 1], [1] * 4, [1, 1]),
            ((3, 3), [2, 2], [1] * 4, [1, 1]),
            ((1, 5), [1, 3], [0, 2, 0, 2], [1, 2]),
            ((2, 2), [1, 1], [0] * 4, [1, 300]),
        ],
    ),
    ((302, 302), ((2, 2), [1, 1], [0] * 4, [300, 1])),
]


@pytest.mark.parametrize("n_in", [16, 20, 64])
@pytest.mark.parametrize(("side", "window"), WIDE, ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_bands_of_wide_maps_lie_within_rows(
    isa: str, n_in: int, side: tuple, window: tuple, groups: int
) -> None:
    kernel, stride, padding, dilation = window
    rng = np.random.default_rng(13)
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    layer = binary_layer(rng, n_in, 6, kernel, **geometry)
    check_dots(isa, layer, normal(rng, 1, n_in, *side), threads=2)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc and limits the address space")
def test_a_huge_stride_reserves_nothing_for_rows_that_do_not_exist(
    isa: str, pooled: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(12)
    attributes = {"stride": [2**20, 2**20], "padding": [1] * 4, "dilation": [1, 1], "groups": 1}
    tensors = {"weight": normal(rng, 2, 3, 3, 3), "bias": normal(rng, 2)}
    images = normal(rng, 1, 3, 200, 100)
    conv = Layer("conv", "conv", ("input",), attributes | ({"stride": [1, 1]} if pooled else {}), tensors)
    window = {"kernel": [200, 100], "stride": [2**20, 2**20], "padding": [0] * 4}
    layers = [conv, Layer("max_pool", "pool", ("conv",), window)] if pooled else [conv]
    network = checked(Network(images.shape[1:], (*layers, Layer("flatten", "out", (layers[-1].name,)))))
    write(network, tmp_path / "m.lbit")
    np.save(tmp_path / "images.npy", images)
    # A process of its own, which may map 0.4 GB more than at its start: rows that do not exist would take 9 GB.
    code = (
        "import resource, numpy as np\nfrom latentbit import engine\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "limit = pages * resource.getpagesize() + 400_000_000\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "net = engine.load('m.lbit', threads=2)\n"
        "np.save('found.npy', net(np.load('images.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    oracle = lbit_oracle.values(network, images)[layers[-1].name]
    found = np.load(tmp_path / "found.npy")
    np.testing.assert_allclose(found, oracle.reshape(1, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("channels", [1, 8, 20, 64])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [([3, 3], [2, 2], [1] * 4), ([2, 2], [2, 2], [0, 0, 1, 1]), ([2, 3], [1, 2], [1, 0, 0, 2])],
    ids=str,
)
def test_pooling(isa: str, op: str, channels: int, kernel: list, stride: list, padding: list) -> None:
    rng = np.random.default_rng(8)
    images = normal(rng, 2, channels, 7, 9)
    for include in (False, True):
        attributes = {"kernel": kernel, "stride": stride, "padding": padding}
        if op == "avg_pool":
            attributes["count_include_pad"] = include
        found, network = run([Layer(op, "pool", ("input",), attributes)], images, isa)
        oracle = lbit_oracle.values(network, images)["pool"]
        np.testing.assert_allclose(found, oracle, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 16, 20])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "size"),
    [
        ([2, 2], [0, 0], [1, 1], 1, [8, 10]),
        ([2, 3], [1, 2], [2, 1], 1, [9, 14]),
        ([1, 1], [2, 0], [1, 2], 0, [2, 9]),
        ([3, 3], [0, 0], [1, 1], 0, [14, 17]),  # larger than the taps reach: the rest is the bias
    ],
)
def test_transposed_convolution(
    isa: str, channels: int, stride: list, padding: list, dilation: list, groups: int, size: list
) -> None:
    rng = np.random.default_rng(10)
    images, n_out = normal(rng, 2, channels, 4, 5), 2 * channels
    groups = groups or channels
    weight = normal(rng, n_out, channels // groups, 2, 3)
    attributes = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "size": size,
    }
    layer = Layer(
        "conv_transpose", "up", ("input",), attributes, {"weight": weight, "bias": normal(rng, n_out)}
    )
    found, network = run([layer], images, isa, threads=2)
    np.testing.assert_allclose(found, lbit_oracle.values(network, images)["up"], rtol=1e-5, atol=1e-5)
    # torch stores the weight the other way round, and its size is what the taps reach plus some.
    turned = torch.from_numpy(weight).reshape(groups, -1, *weight.shape[1:]).transpose(1, 2)
    whole = functional.conv_transpose2d(
        torch.from_numpy(images),
        turned.reshape(channels, -1, 2, 3),
        torch.from_numpy(layer.tensors["bias"].copy()),
        stride,
        dilation=dilation,
        groups=groups,
    ).numpy()[:, :, padding[0] :, padding[1] :]
    rows, columns = min(size[0], whole.shape[2]), min(size[1], whole.shape[3])
    np.testing.assert_allclose(
        found[:, :, :rows, :columns], whole[:, :, :rows, :columns], rtol=1e-5, atol=1e-5
    )


def outputs(images: np.ndarray, *layers: Layer) -> dict[str, np.ndarray]:
    """What the last layer gives on every instruction set."""
    network = checked(Network(images.shape[1:], layers))
    return {name: Engine(network, isa=name, threads=2)(images) for name in available()}


def places(rng: np.random.Generator, n_in: int, n_out: int) -> tuple[np.ndarray, np.ndarray]:
    share = rng.random(n_out).astype(np.float32)
    share[:2] = 0, 1
    return rng.integers(0, n_in, n_out).astype(np.int32), share


@pytest.mark.parametrize("channels", [1, 16, 21])
def test_what_is_portable_is_the_same_on_every_instruction_set(channels: int) -> None:
    """Curves, products, resizing and averages: to the last bit; a sign and a shortcut may follow in one step."""
    rng = np.random.default_rng(11)
    images = normal(rng, 3, channels, 5, 7) * 3
    roles = ("row", "row_share", "column", "column_share")
    resized = dict(zip(roles, (*places(rng, 5, 9), *places(rng, 7, 4)), strict=True))
    gate = Layer("adaptive_avg_pool", "gate", ("input",), {"size": [1, 1]})
    cases = {
        **{op: [Layer(op, "x", ("input",))] for op in ("sigmoid", "silu", "hard_sigmoid", "hard_swish")},
        "clamp": [Layer("clamp", "x", ("input",), {"low": -0.25, "high": 1.5})],
        "multiply": [Layer("silu", "s", ("input",)), Layer("multiply", "x", ("input", "s"))],
        "gate": [gate, Layer("multiply", "x", ("input", "gate"))],
        "resize": [Layer("resize", "x", ("input",), {}, resized)],
        "adaptive_avg_pool": [Layer("adaptive_avg_pool", "x", ("input",), {"size": [3, 9]})],
        "reshape": [Layer("reshape", "x", ("input",), {"size": [7, channels, 5]})],
        "permute": [Layer("permute", "x", ("input",), {"order": [1, 2, 0]})],
    }
    for op, layers in cases.items():
        for after in ([], [Layer("add", "twice", ("x", "x"))], [Layer("relu", "relu", ("x",))]):
            network = checked(Network(images.shape[1:], (*layers, *after)))
            expected = lbit_oracle.values(network, images)[network.layers[-1].name]
            found = outputs(images, *layers, *after)
            for name, values in found.items():
                np.testing.assert_array_equal(values, found["scalar"], err_msg=f"{op} on {name}")
            np.testing.assert_allclose(found["scalar"], expected, rtol=1e-5, atol=1e-6, err_msg=op)


def test_sigmoid_and_silu_are_within_3e_7_of_float64(isa: str) -> None:
    """The bound that docs/format.md states, over the whole range of float32, and where exp leaves it."""
    ends = np.float32([0, -0.0, 87, -87, 87.1, -87.1, 88.8, -1e4, 1e4, 1e38, -1e38, 1e-45, -1e-38])
    dense = np.linspace(-90, 90, 400_000, dtype=np.float32)
    x = np.concatenate([ends, dense, np.float32(2) ** np.arange(-140, 128, dtype=np.float32)])
    x64 = x.astype(np.float64)
    images = x.reshape(1, 1, 1, -1)
    with np.errstate(over="ignore"):
        sigmoid = 1 / (1 + np.exp(-x64))
    for op, expected in (("sigmoid", sigmoid), ("silu", x64 * sigmoid)):
        found = outputs(images, Layer(op, "x", ("input",)))[isa].reshape(-1).astype(np.float64)
        inside = np.abs(x) <= 87
        normal_sized = np.abs(expected) > 2e-38  # below, float32 has fewer bits
        error = np.abs(found - expected) / np.maximum(np.abs(expected), 2e-38)
        assert error[inside & normal_sized].max() <= 3e-7
        assert np.abs(found - expected)[~inside & (x < 0)].max() <= 2e-36
        np.testing.assert_array_equal(found[x > 88], expected[x > 88].astype(np.float32))
    odd = np.float32([np.nan, np.inf, -np.inf]).reshape(1, 1, 1, 3)
    values = outputs(odd, Layer("sigmoid", "x", ("input",)))[isa].reshape(-1)
    assert np.isnan(values[0]) and values[1] == 1 and values[2] == 0


def test_pooling_of_bits_is_pooling_of_signs(isa: str) -> None:
    rng = np.random.default_rng(9)
    images = normal(rng, 2, 70, 7, 6)
    attributes = {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 0, 1, 1]}
    layer = binary_layer(rng, 70, 5, (1, 1))
    layers = [
        Layer("sign", "sign", ("input",)),
        Layer("max_pool", "pool", ("sign",), attributes),
        Layer(layer.op, "conv", ("pool",), layer.attributes, layer.tensors),
    ]
    found, network = run(layers, images, isa)
    np.testing.assert_array_equal(found, lbit_oracle.values(network, images)["conv"])


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [
        ((7, 7), [2, 2], [3] * 4),
        ((7, 7), [2, 2], [0, 2, 1, 5]),
        ((3, 7), [1, 2], [1] * 4),
        ((3, 3), [1, 1], [1] * 4),
        ((5, 3), [2, 1], [0, 0, 2, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize(("n_in", "n_out"), [(3, 64), (1, 5), (4, 40)])
@pytest.mark.parametrize("width", [21, 70, 129])
def test_stems_two_outputs_at_a_time(
    isa: str, kernel: tuple, stride: list, padding: list, n_in: int, n_out: int, width: int
) -> None:
    """Wide enough for the kernels that make two outputs with fewer products; any parity of the width."""
    rng = np.random.default_rng(18)
    attributes = {"stride": stride, "padding": padding, "dilation": [1, 1], "groups": 1}
    tensors = {"weight": normal(rng, n_out, n_in, *kernel), "bias": normal(rng, n_out)}
    images = normal(rng, 2, n_in, 12, width)
    found, network = run([Layer("conv", "conv", ("input",), attributes, tensors)], images, isa, threads=2)
    oracle = lbit_oracle.values(network, images)["conv"]
    np.testing.assert_allclose(found, oracle, rtol=0, atol=3e-6 * np.abs(oracle).max())


def pixels(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape).astype(np.uint8)


def normalised(images: np.ndarray, network: Network) -> np.ndarray:
    """float32, as latentbit.engine.classify does it."""
    mean, std = (np.array(v, np.float32)[:, None, None] for v in (network.mean, network.std))
    return (images.astype(np.float32) / 255 - mean) / std


def byte_stem(rng: np.random.Generator, n_in: int, n_out: int, kernel: tuple, **geometry: object) -> Layer:
    attributes = {"stride": [1, 1], "padding": [0] * 4, "dilation": [1, 1], "groups": 1} | geometry
    tensors = {
        "weight": rng.integers(-127, 128, (n_out, n_in, *kernel)).astype(np.int8),
        "weight_scale": np.abs(normal(rng, n_out)) / 100,
        "bias": normal(rng, n_out),
    }
    return Layer("conv", "conv", ("input",), attributes, tensors)


BYTE_WINDOWS = [
    ((7, 7), [2, 2], [3] * 4, [1, 1]),
    ((3, 3), [1, 1], [1] * 4, [1, 1]),
    ((5, 4), [3, 2], [4, 0, 1, 3], [2, 1]),
    ((1, 1), [1, 1], [0] * 4, [1, 1]),
    ((3, 3), [1, 1], [2] * 4, [1, 2]),  # taps that do not touch: normalised and convolved in floats
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), BYTE_WINDOWS, ids=str)
@pytest.mark.parametrize(("n_in", "n_out"), [(3, 64), (1, 5), (3, 24), (4, 130)])
@pytest.mark.parametrize("same_std", [False, True])
def test_bytes_through_an_8_bit_stem(
    isa: str,
    n_in: int,
    n_out: int,
    kernel: tuple,
    stride: list,
    padding: list,
    dilation: list,
    same_std: bool,
) -> None:
    """Padding adds nothing after normalisation, for every border."""
    rng = np.random.default_rng(14)
    stem = byte_stem(rng, n_in, n_out, kernel, stride=stride, padding=padding, dilation=dilation)
    std = (0.25,) * n_in if same_std else tuple(0.2 + 0.05 * i for i in range(n_in))
    layers = (stem, Layer("flatten", "out", ("conv",)))
    network = checked(
        Network((n_in, 11, 14), layers, mean=tuple(0.3 + 0.1 * i for i in range(n_in)), std=std)
    )
    images = pixels(rng, 2, n_in, 11, 14)
    engine = Engine(network, threads=2)
    assert engine.isa == isa
    oracle = lbit_oracle.run(network, normalised(images, network).astype(np.float64))
    found = engine(images)
    np.testing.assert_allclose(found, oracle, rtol=1e-5, atol=1e-5 * np.abs(oracle).max())
    np.testing.assert_array_equal(engine(images.transpose(0, 2, 3, 1)), found)
    np.testing.assert_allclose(engine(normalised(images, network)), found, atol=1e-4 * np.abs(oracle).max())


@pytest.mark.parametrize("first", ["conv", "sign", "max_pool"])
def test_bytes_are_normalised_for_any_first_layer(isa: str, first: str) -> None:
    """To the last bit as numpy does it, so that the same picture gives the same logits either way."""
    rng = np.random.default_rng(15)
    if first == "conv":
        tensors = {"weight": normal(rng, 20, 3, 3, 3), "bias": normal(rng, 20)}
        attributes = {"stride": [1, 1], "padding": [1] * 4, "dilation": [1, 1], "groups": 1}
        layers = [Layer("conv", "a", ("input",), attributes, tensors)]
    elif first == "sign":
        conv = binary_layer(rng, 3, 20, (3, 3), padding=[1] * 4)
        layers = [
            Layer("sign", "sign", ("input",)),
            Layer(conv.op, "a", ("sign",), conv.attributes, conv.tensors),
        ]
    else:
        window = {"kernel": [2, 2], "stride": [2, 2], "padding": [0] * 4}
        layers = [Layer("max_pool", "a", ("input",), window)]
    layers.append(Layer("flatten", "out", ("a",)))
    network = checked(Network((3, 9, 37), tuple(layers), mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)))
    images = pixels(rng, 3, 3, 9, 37)
    engine = Engine(network, threads=2)
    expected = engine(normalised(images, network))
    np.testing.assert_array_equal(engine(images), expected)
    np.testing.assert_array_equal(engine(images.transpose(0, 2, 3, 1), layout="nhwc"), expected)


def test_the_largest_sums_of_bytes_stay_exact(isa: str) -> None:
    rng = np.random.default_rng(16)
    for sign in (1, -1):
        stem = byte_stem(rng, 4, 16, (7, 8), padding=[3] * 4)
        stem.tensors["weight"][:] = 127 * sign
        stem.tensors["weight_scale"][:] = 1
        stem.tensors["bias"][:] = 0
        network = checked(Network((4, 9, 9), (stem, Layer("flatten", "out", ("conv",)))))
        images = np.full((1, 4, 9, 9), 255, np.uint8)
        oracle = lbit_oracle.run(network, np.ones((1, 4, 9, 9)))
        np.testing.assert_allclose(Engine(network)(images), oracle, rtol=1e-6)


def test_layers_choose_the_kernels_that_suit_them() -> None:
    if "avx512" not in available():
        pytest.skip("a choice of AVX-512")
    rng = np.random.default_rng(17)
    first = binary_layer(rng, 8, 64, (3, 3), padding=[1] * 4)
    second = binary_layer(rng, 64, 8, (3, 3), padding=[1] * 4)
    layers = (
        Layer("sign", "sign", ("input",)),
        Layer(first.op, "few", ("sign",), first.attributes, first.tensors),
        Layer("sign", "many.sign", ("few",)),
        Layer(second.op, "many", ("many.sign",), second.attributes, second.tensors),
        Layer("flatten", "flat", ("many",)),
    )
    engine = Engine(checked(Network((8, 9, 9), layers)), isa="avx512")
    assert engine.step_kernels == ["avx512", "avx2", "avx512", "avx512"]


def test_peak_counts_something() -> None:
    assert all(_native.peak(name) > 0 for name in available())
