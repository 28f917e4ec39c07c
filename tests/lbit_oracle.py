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
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "global_avg_pool": lambda layer, x: x.mean(axis=(2, 3)),
    "flatten": lambda layer, x: x.reshape(len(x), -1),
    "add": lambda layer, a, b: a + b,
    "concat": lambda layer, *parts: np.concatenate(parts, axis=1),
}
