"""What docs/format.md says each op computes, in plain NumPy and slowly: the oracle of packing and engine.

Values are float64 maps (N, C, H, W) or vectors (N, C); bits are +1 and -1. Nothing is fused or packed.
"""

import numpy as np

from latentbit.lbit import INPUT, Layer, Network, unpack_signs


def run(network: Network, images: np.ndarray) -> np.ndarray:
    """Logits (N, outputs) of images (N, C, H, W)."""
    return values(network, images)[network.layers[-1].name]


def values(network: Network, images: np.ndarray, dtype: type = np.float64) -> dict[str, np.ndarray]:
    """The value of every layer, by name. With float32 the products are rounded as the engine rounds them."""
    found = {INPUT: images.astype(dtype)}
    for layer in network.layers:
        found[layer.name] = OPS[layer.op](layer, *(found[name] for name in layer.inputs)).astype(dtype)
        assert found[layer.name].shape[1:] == layer.shape, layer.name
    return found


def dot(layer: Layer, x: np.ndarray) -> np.ndarray:
    """The integer that a binary layer sums up, before scale or threshold."""
    signs = unpack_signs(layer.tensors["bits"], _bits_per_row(layer)).astype(np.float64)
    if layer.op == "binary_linear":
        return x @ signs.T
    return _convolve(layer, x, signs.transpose(0, 3, 1, 2))


def _bits_per_row(layer: Layer) -> int:
    if layer.op == "binary_linear":
        return layer.attributes["in_features"]
    return layer.attributes["in_channels"] // layer.attributes["groups"]


def _per_channel(vector: np.ndarray, x: np.ndarray) -> np.ndarray:
    return vector.astype(x.dtype).reshape(1, -1, *([1] * (x.ndim - 2)))


def _windows(layer: Layer, x: np.ndarray, kernel: tuple[int, int], fill: float) -> np.ndarray:
    """(N, C, H', W', kh, kw): what the kernel sees at each output."""
    top, left, bottom, right = layer.attributes["padding"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    (sh, sw), (dh, dw) = layer.attributes["stride"], layer.attributes.get("dilation", (1, 1))
    extent = (dh * (kernel[0] - 1) + 1, dw * (kernel[1] - 1) + 1)
    view = np.lib.stride_tricks.sliding_window_view(x, extent, axis=(2, 3))
    return view[:, :, ::sh, ::sw, ::dh, ::dw]


def _convolve(layer: Layer, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    groups = layer.attributes["groups"]
    windows = _windows(layer, x, weight.shape[2:], 0.0)
    parts = [
        np.einsum("nchwij,ocij->nohw", w, k, optimize=True)
        for w, k in zip(np.split(windows, groups, axis=1), np.split(weight, groups, axis=0), strict=True)
    ]
    return np.concatenate(parts, axis=1)


def _real_weight(layer: Layer) -> np.ndarray:
    weight = layer.tensors["weight"].astype(np.float64)
    if "weight_scale" in layer.tensors:
        weight = weight * layer.tensors["weight_scale"].reshape(-1, *([1] * (weight.ndim - 1)))
    return weight


def conv(layer: Layer, x: np.ndarray) -> np.ndarray:
    y = _convolve(layer, x, _real_weight(layer))
    return y + _per_channel(layer.tensors["bias"], y)


def linear(layer: Layer, x: np.ndarray) -> np.ndarray:
    return x @ _real_weight(layer).T + layer.tensors["bias"]


def sign(layer: Layer, x: np.ndarray) -> np.ndarray:
    threshold = layer.tensors.get("threshold", np.zeros(x.shape[1]))
    flip = layer.tensors.get("flip", np.zeros(x.shape[1]))
    negative = (x < _per_channel(threshold, x)) ^ (_per_channel(flip, x) > 0)
    return np.where(negative, -1.0, 1.0)


def binary(layer: Layer, x: np.ndarray) -> np.ndarray:
    n = dot(layer, x).astype(x.dtype)
    if "threshold" in layer.tensors:
        return sign(layer, n)
    return affine(layer, n)


def affine(layer: Layer, x: np.ndarray) -> np.ndarray:
    return x * _per_channel(layer.tensors["scale"], x) + _per_channel(layer.tensors["bias"], x)


def prelu(layer: Layer, x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, x * _per_channel(layer.tensors["slope"], x), x)


def max_pool(layer: Layer, x: np.ndarray) -> np.ndarray:
    return _windows(layer, x, layer.attributes["kernel"], -np.inf).max(axis=(4, 5))


def avg_pool(layer: Layer, x: np.ndarray) -> np.ndarray:
    total = _windows(layer, x, layer.attributes["kernel"], 0.0).sum(axis=(4, 5))
    if layer.attributes["count_include_pad"]:
        return total / np.prod(layer.attributes["kernel"])
    return total / _windows(layer, np.ones_like(x), layer.attributes["kernel"], 0.0).sum(axis=(4, 5))


def adaptive_avg_pool(layer: Layer, x: np.ndarray) -> np.ndarray:
    for axis, n in zip((2, 3), layer.attributes["size"], strict=True):
        size = x.shape[axis]
        windows = [slice(i * size // n, -(-(i + 1) * size // n)) for i in range(n)]
        axis_of = [slice(None)] * axis
        x = np.stack([x[(*axis_of, window)].mean(axis=axis) for window in windows], axis=axis)
    return x


def resize(layer: Layer, x: np.ndarray) -> np.ndarray:
    for axis, role in ((3, "column"), (2, "row")):
        at, share = layer.tensors[role], layer.tensors[f"{role}_share"].astype(x.dtype)
        share = share.reshape([-1 if i == axis else 1 for i in range(4)])
        after = np.minimum(at + 1, x.shape[axis] - 1)
        x = x.take(at, axis) * (1 - share) + np.where(share == 0, 0, x.take(after, axis) * share)
    return x


def conv_transpose(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Tap by tap, each added where the definition puts it."""
    weight, a = _real_weight(layer), layer.attributes
    height, width = a["size"]
    y = np.zeros((len(x), len(weight), height, width), x.dtype)
    groups = list(zip(np.split(x, a["groups"], axis=1), np.split(weight, a["groups"]), strict=True))
    for ky, kx in np.ndindex(*weight.shape[2:]):
        rows = np.arange(x.shape[2]) * a["stride"][0] + ky * a["dilation"][0] - a["padding"][0]
        columns = np.arange(x.shape[3]) * a["stride"][1] + kx * a["dilation"][1] - a["padding"][1]
        down, across = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
        seen = [(part[:, :, down][:, :, :, across], w[:, :, ky, kx]) for part, w in groups]
        sums = np.concatenate([np.einsum("nchw,oc->nohw", part, w) for part, w in seen], axis=1)
        y[:, :, rows[down][:, None], columns[across]] += sums
    return y + _per_channel(layer.tensors["bias"], y)


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def multiply(layer: Layer, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * (b if b.shape == a.shape else b.reshape(*b.shape[:2], *[1] * (a.ndim - 2)))


OPS = {
    "conv": conv,
    "linear": linear,
    "sign": sign,
    "binary_conv": binary,
    "binary_linear": binary,
    "affine": affine,
    "prelu": prelu,
    "relu": lambda layer, x: np.maximum(x, 0),
    "hardtanh": lambda layer, x: np.clip(x, -1, 1),
    "clamp": lambda layer, x: np.clip(x, layer.attributes["low"], layer.attributes["high"]),
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "global_avg_pool": lambda layer, x: x.mean(axis=(2, 3)),
    "adaptive_avg_pool": adaptive_avg_pool,
    "resize": resize,
    "conv_transpose": conv_transpose,
    "sigmoid": lambda layer, x: sigmoid(x),
    "silu": lambda layer, x: x * sigmoid(x),
    "hard_sigmoid": lambda layer, x: np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda layer, x: x * np.clip(x + 3, 0, 6) / 6,
    "multiply": multiply,
    "reshape": lambda layer, x: x.reshape(len(x), *layer.attributes["size"]),
    "permute": lambda layer, x: x.transpose(0, *(axis + 1 for axis in layer.attributes["order"])),
    "flatten": lambda layer, x: x.reshape(len(x), -1),
    "add": lambda layer, a, b: a + b,
    "concat": lambda layer, *parts: np.concatenate(parts, axis=1),
}
