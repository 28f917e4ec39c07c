"""What a packed network weighs, layer by layer: bits, bytes, and why some numbers are still real."""

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentbit.lbit import INPUT, Layer, Network, to_bytes

REAL = ("conv", "linear", "conv_transpose")
WEIGHTED = (*REAL, "binary_conv", "binary_linear")


@dataclass(frozen=True)
class LayerSize:
    """One layer that holds numbers."""

    name: str
    op: str
    n_weights: int
    weight_bits: int
    """Bits per weight as stored: 1, 8, 16 or 32; 0 for a layer without weights."""
    n_bytes: int
    """All tensors of the layer in the file; rows of bits are padded to 64."""
    fp32_bytes: int
    """The same layer with float32 weights and a bias; 0 for binary layers after the first of one module, which is
    called again or has several bases: the real network has it once."""
    why: str


@dataclass(frozen=True)
class Sizes:
    """The whole network; `file_bytes` counts the header too."""

    rows: tuple[LayerSize, ...]
    file_bytes: int
    fp32_bytes: int

    @property
    def ratio(self) -> float:
        """How many times smaller than FP32 the file is."""
        return self.fp32_bytes / self.file_bytes

    @property
    def binary_weights(self) -> int:
        return sum(row.n_weights for row in self.rows if row.weight_bits == 1)

    @property
    def real_weights(self) -> int:
        return sum(row.n_weights for row in self.rows if row.weight_bits > 1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        totals = {
            "file_bytes": self.file_bytes,
            "fp32_bytes": self.fp32_bytes,
            "ratio": self.ratio,
            "binary_weights": self.binary_weights,
            "real_weights": self.real_weights,
        }
        return {"layers": [dataclasses.asdict(row) for row in self.rows], **totals}


def weigh(network: Network) -> Sizes:
    """Count a network as its file holds it."""
    rows = tuple(_row(network, layer) for layer in network.layers if layer.tensors)
    return Sizes(rows, len(to_bytes(network)), sum(row.fp32_bytes for row in rows))


def _row(network: Network, layer: Layer) -> LayerSize:
    n_weights = _n_weights(layer)
    bits = 0
    fp32_bytes = layer.n_bytes
    if layer.op in WEIGHTED:
        bits = 1 if "bits" in layer.tensors else 8 * layer.tensors["weight"].itemsize
        fp32_bytes = 4 * (n_weights + layer.shape[0])
        if bits == 1 and re.search(r"@\d+$", layer.name):
            fp32_bytes = 0
    return LayerSize(layer.name, layer.op, n_weights, bits, layer.n_bytes, fp32_bytes, _why(network, layer))


def _n_weights(layer: Layer) -> int:
    if "weight" in layer.tensors:
        return layer.tensors["weight"].size
    if layer.op == "binary_linear":
        return len(layer.tensors["bits"]) * layer.attributes["in_features"]
    if layer.op == "binary_conv":
        per_group = layer.attributes["in_channels"] // layer.attributes["groups"]
        return math.prod(layer.tensors["bits"].shape[:3]) * per_group
    return 0


def _why(network: Network, layer: Layer) -> str:
    """What of this layer is still real, and the reason in brackets."""
    if layer.op in REAL:
        place = "kept real"
        if layer.inputs == (INPUT,):
            place = "first layer"
        elif layer is network.layers[-1]:
            place = "last layer"
        return (
            f"scales of int8 ({place})" if layer.tensors["weight"].dtype == np.int8 else f"weights ({place})"
        )
    if layer.op in ("binary_conv", "binary_linear"):
        readers = sorted({user.op for user in network.layers if layer.name in user.inputs}) or ["output"]
        return "nothing: integer threshold" if layer.bits else f"scale, bias (for {', '.join(readers)})"
    return {
        "sign": "thresholds",
        "prelu": "slopes",
        "affine": "scale, bias (nothing to fold into)",
        "resize": "which pixels to mix",
    }[layer.op]
