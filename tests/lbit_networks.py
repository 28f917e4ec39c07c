"""Packed networks for the tests of planning, lowering and engine, built by hand and at random."""

from collections.abc import Iterator

import numpy as np

from latentbit.lbit import Layer, Network, checked, pack_signs

SAME = {"stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1}
HALVE = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0, 0, 0]}


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def real_conv(rng: np.random.Generator, name: str, source: str, n_in: int, n_out: int) -> Layer:
    tensors = {"weight": normal(rng, n_out, n_in, 3, 3), "bias": normal(rng, n_out)}
    return Layer("conv", name, (source,), SAME, tensors)


def binary_conv(
    rng: np.random.Generator, name: str, source: str, n_in: int, n_out: int, stride: int = 1
) -> Layer:
    tensors = {
        "bits": pack_signs(normal(rng, n_out, 3, 3, n_in)),
        "scale": normal(rng, n_out) * np.float32(0.05),
        "bias": normal(rng, n_out),
    }
    attributes = SAME | {"in_channels": n_in, "stride": [stride, stride]}
    return Layer("binary_conv", name, (source,), attributes, tensors)


def block_network(*, stem_pool: bool = False, shortcut: bool = True, channels: int = 16) -> Network:
    """Stem, one down-sampling residual block that doubles the channels, global average."""
    rng = np.random.default_rng(0)
    c = channels
    layers = [real_conv(rng, "stem", "input", 3, c)]
    if stem_pool:
        layers.append(Layer("max_pool", "stem.pool", ("stem",), HALVE))
    x = layers[-1].name
    layers += [
        Layer("sign", "block.sign", (x,)),
        binary_conv(rng, "block", "block.sign", c, 2 * c, 2),
    ]
    if shortcut:
        layers += [
            Layer("max_pool", "shortcut", (x,), HALVE),
            Layer("concat", "repeat", ("shortcut", "shortcut")),
            Layer("add", "sum", ("block", "repeat")),
        ]
    slope = {"slope": np.abs(normal(rng, 2 * c))}
    layers += [
        Layer("prelu", "act", (layers[-1].name,), {}, slope),
        Layer("global_avg_pool", "pool", ("act",)),
    ]
    return checked(Network((3, 8, 8), tuple(layers)))


PLAIN = ("block", "block", "affine", "prelu", "relu", "hardtanh", "add", "concat", "pool", "clamp")
EVERY = (*PLAIN, "silu", "multiply", "gate")


def random_network(seed: int, ops: tuple[str, ...] = EVERY) -> Network:
    """A random graph of ordinary layers on one map size, so that every planner decision meets every other."""
    rng = np.random.default_rng(seed)
    c = int(rng.choice([3, 16, 32, 70]))
    layers = [real_conv(rng, "l0", "input", 2, c)]
    values = ["l0"]
    for i in range(1, 14):
        name, source = f"l{i}", str(rng.choice(values[-4:]))
        op = str(rng.choice(ops))
        if op == "block":
            tensors = {"threshold": normal(rng, c), "flip": rng.integers(0, 2, c).astype(np.uint8)}
            layers.append(Layer("sign", f"{name}.sign", (source,), {}, tensors if rng.random() < 0.5 else {}))
            layers.append(binary_conv(rng, name, f"{name}.sign", c, c))
        elif op == "affine":
            layers.append(Layer(op, name, (source,), {}, {"scale": normal(rng, c), "bias": normal(rng, c)}))
        elif op == "prelu":
            layers.append(Layer(op, name, (source,), {}, {"slope": normal(rng, c)}))
        elif op == "add":
            layers.append(Layer(op, name, (source, str(rng.choice(values[-4:])))))
        elif op == "clamp":
            layers.append(Layer(op, name, (source,), {"low": -0.5, "high": float(rng.uniform(0, 2))}))
        elif op == "multiply":
            layers.append(Layer("hard_sigmoid", f"{name}.gate", (str(rng.choice(values[-4:])),)))
            layers.append(Layer(op, name, (source, f"{name}.gate")))
        elif op == "gate":
            layers.append(Layer("adaptive_avg_pool", f"{name}.mean", (source,), {"size": [1, 1]}))
            layers.append(Layer("sigmoid", f"{name}.gate", (f"{name}.mean",)))
            layers.append(Layer("multiply", name, (source, f"{name}.gate")))
        elif op == "concat":
            if c % 2:
                continue
            layers.append(Layer("concat", f"{name}.cat", (source, source)))
            layers.append(Layer("sign", f"{name}.sign", (source,)))
            layers.append(binary_conv(rng, f"{name}.conv", f"{name}.sign", c, 2 * c))
            layers.append(Layer("add", f"{name}.add", (f"{name}.cat", f"{name}.conv")))
            layers.append(Layer("sign", f"{name}.back", (f"{name}.add",)))
            layers.append(binary_conv(rng, name, f"{name}.back", 2 * c, c))
        elif op == "pool":
            window = {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1, 1, 1]}
            layers.append(Layer("max_pool", name, (source,), window))
        else:
            layers.append(Layer(op, name, (source,)))
        values.append(name)
    used = {name for layer in layers for name in layer.inputs}
    ends = [name for name in values if name not in used]
    while len(ends) > 1:
        layers.append(Layer("add", f"join{len(ends)}", (ends[0], ends.pop())))
        ends[0] = layers[-1].name
    layers.append(Layer("flatten", "flat", (ends[0],)))
    side = 6
    weight = {"weight": normal(rng, 4, c * side * side) * np.float32(0.01), "bias": normal(rng, 4)}
    layers.append(Layer("linear", "fc", ("flat",), {}, weight))
    return checked(Network((2, side, side), tuple(layers)))


def compact_network(
    widths: tuple[int, ...] = (16, 32, 64), n_in: int = 1, side: int = 8, blocks: int = 4
) -> Network:
    """The compact ResNet with random weights: a skip around every binary convolution, the map halved between stages.
    The defaults are the network of the embedded digits.
    """
    rng = np.random.default_rng(0)
    layers = [real_conv(rng, "stem", "input", n_in, widths[0])]
    c = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            x, name = layers[-1].name, f"stages.{stage}.{block}"
            halves = stage > 0 and block == 0
            layers.append(Layer("sign", f"{name}.sign", (x,), {}, {"threshold": normal(rng, c)}))
            layers.append(binary_conv(rng, f"{name}.conv", f"{name}.sign", c, width, 2 if halves else 1))
            if halves:
                layers.append(Layer("max_pool", f"{name}.pool", (x,), HALVE))
                x = f"{name}.pool"
                if width > c:
                    layers.append(Layer("concat", f"{name}.cat", (x,) * (width // c)))
                    x = f"{name}.cat"
            layers.append(Layer("add", f"{name}.add", (f"{name}.conv", x)))
            layers.append(Layer("prelu", name, (f"{name}.add",), {}, {"slope": np.abs(normal(rng, width))}))
            c = width
    fc = {"weight": normal(rng, 10, c), "bias": normal(rng, 10)}
    layers += [Layer("global_avg_pool", "pool", (layers[-1].name,)), Layer("linear", "fc", ("pool",), {}, fc)]
    mean, std = (0.5,) * n_in, (0.25,) * n_in
    return checked(Network((n_in, side, side), tuple(layers), mean=mean, std=std))


def every_network() -> Iterator[Network]:
    for stem_pool in (False, True):
        for shortcut in (False, True):
            yield block_network(stem_pool=stem_pool, shortcut=shortcut)
    for seed in range(40):
        yield random_network(seed)
