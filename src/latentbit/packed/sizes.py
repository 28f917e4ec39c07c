"""What a packed network weighs, layer by layer: bits, bytes, and why some numbers are still floats."""

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latentbit.packed import INPUT, Layer, Network, to_bytes

if TYPE_CHECKING:
    from rich.table import Table

WEIGHTED = ("conv", "linear", "binary_conv", "binary_linear")


@dataclass(frozen=True)
class Row:
    """One layer that holds numbers."""

    name: str
    op: str
    n_weights: int
    weight_bits: int
    """Bits per weight as stored: 1, 8, 16 or 32; 0 for a layer without weights."""
    n_bytes: int
    """All tensors of the layer in the file; rows of bits are padded to 64."""
    fp32_bytes: int
    """The same layer with float32 weights and a bias."""
    why: str


@dataclass(frozen=True)
class Sizes:
    """The whole network; `file_bytes` counts the header too."""

    rows: tuple[Row, ...]
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

    def table(self) -> "Table":
        """For the terminal."""
        from rich.table import Table

        table = Table(title="packed network", title_justify="left", show_footer=True)
        table.add_column("layer", "total")
        table.add_column("op", f"{self.ratio:.1f}x smaller")
        table.add_column("weights", f"{self.binary_weights + self.real_weights:,}", justify="right")
        table.add_column("bits", justify="right")
        table.add_column("bytes", f"{self.file_bytes:,}", justify="right")
        table.add_column("as FP32", f"{self.fp32_bytes:,}", justify="right")
        table.add_column("what is float, and why")
        for row in self.rows:
            n_weights, bits = (f"{row.n_weights:,}", str(row.weight_bits)) if row.n_weights else ("", "")
            table.add_row(
                row.name, row.op, n_weights, bits, f"{row.n_bytes:,}", f"{row.fp32_bytes:,}", row.why
            )
        header = self.file_bytes - sum(row.n_bytes for row in self.rows)
        table.add_row("header", "", "", "", f"{header:,}", "", "the layer list, as text")
        return table


def weigh(network: Network) -> Sizes:
    """Count a network as its file holds it."""
    rows = tuple(_row(network, layer) for layer in network.layers if layer.tensors)
    return Sizes(rows, len(to_bytes(network)), sum(row.fp32_bytes for row in rows))


def _row(network: Network, layer: Layer) -> Row:
    n_weights = _n_weights(layer)
    bits = 0
    fp32_bytes = layer.n_bytes
    if layer.op in WEIGHTED:
        bits = 1 if "bits" in layer.tensors else 8 * layer.tensors["weight"].itemsize
        fp32_bytes = 4 * (n_weights + layer.shape[0])
    return Row(layer.name, layer.op, n_weights, bits, layer.n_bytes, fp32_bytes, _why(network, layer))


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
    if layer.op in ("conv", "linear"):
        place = "kept real in the model"
        if layer.inputs == (INPUT,):
            place = "first layer, reads the image"
        elif layer is network.layers[-1]:
            place = "last layer, makes the logits"
        kind = {np.dtype(np.float16): "float16", np.dtype(np.int8): "int8 x float32 scale"}
        return f"weights {kind.get(layer.tensors['weight'].dtype, 'float32')}: {place}"
    if layer.op in ("binary_conv", "binary_linear"):
        if layer.bits:
            return "none: an integer threshold per channel"
        readers = sorted({user.op for user in network.layers if layer.name in user.inputs}) or ["the output"]
        return f"scale and bias: {', '.join(readers)} needs numbers"
    return {
        "sign": "a threshold per channel",
        "prelu": "a slope per channel",
        "affine": "scale and bias that no layer in front could take",
    }[layer.op]
