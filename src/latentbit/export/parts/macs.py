"""Products per image: how much a network computes, whatever runs it."""

import math

import numpy as np

from latentbit.lbit import Layer, Network


def real_weight(layer: Layer) -> np.ndarray:
    """The float32 weights of a real layer, whatever the file holds."""
    weight = layer.tensors["weight"].astype(np.float32)
    if "weight_scale" in layer.tensors:
        weight *= layer.tensors["weight_scale"].reshape(-1, *([1] * (weight.ndim - 1)))
    return weight


def macs(network: Network) -> tuple[int, int]:
    """Products of signs, and products of real numbers."""
    binary = real = 0
    for layer in network.layers:
        pixels = math.prod(layer.shape[1:])
        if layer.op in ("conv", "linear"):
            real += layer.tensors["weight"].size * pixels
        elif layer.op == "binary_linear":
            binary += layer.shape[0] * layer.attributes["in_features"]
        elif layer.op == "binary_conv":
            per_group = layer.attributes["in_channels"] // layer.attributes["groups"]
            binary += math.prod(layer.tensors["bits"].shape[:3]) * per_group * pixels
    return binary, real
