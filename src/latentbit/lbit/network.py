"""A packed network: layers in topological order over two kinds of values, real (float32) and bits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit.errors import LatentbitError

INPUT = "input"
"""The name under which layers refer to the input of the network."""


class PackedFileError(LatentbitError):
    """A .lbit file, or a network on its way into one, breaks a rule of docs/format.md."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One operation; docs/format.md says what each op computes from its inputs, attributes and tensors."""

    op: str
    name: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    """Of the output: (C, H, W) for a map, (C,) for a vector. Filled in by `checked`."""
    bits: bool = False
    """Whether the output is bits. Filled in by `checked`."""

    @property
    def n_bytes(self) -> int:
        """What the tensors of this layer take in a file."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


@dataclass(frozen=True, eq=False)
class Network:
    """Layers, the last of which is the output, and what a user needs to feed and read it."""

    input_shape: tuple[int, int, int]
    layers: tuple[Layer, ...]
    classes: tuple[str, ...] | None = None
    mean: tuple[float, ...] | None = None
    """Per channel, of pixels in [0, 1]: the network expects (pixel - mean) / std."""
    std: tuple[float, ...] | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    """Free notes on where the network comes from: method, recipe, date. JSON values."""

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(classes,), or (classes, H, W) where every pixel has logits of its own."""
        return self.layers[-1].shape

    @property
    def n_outputs(self) -> int:
        """Classes, of the image or of each pixel."""
        return self.output_shape[0]

    def __getitem__(self, name: str) -> Layer:
        """The layer of that name."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)


def real_vector(values: Any) -> NDArray[np.float32]:
    """Anything array-like as the contiguous float32 vector that tensors of layers are."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float32).reshape(-1))
