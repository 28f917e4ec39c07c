"""Packed networks in the native core, which reads and checks them: the way there and the way back.

The rules are in csrc/ and nowhere else. What is here moves arrays and turns the core's errors into ours.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit import _native
from latentbit.lbit.container import DTYPES
from latentbit.lbit.network import Layer, Network, PackedFileError

NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
LIMITS = _native.limits()
"""How much a packed network may ask for: csrc/lbit/limits.h."""
OPS = dict(_native.ops())
"""What a layer may compute, and the version of the format that it came with; docs/format.md has a row for each."""


def in_file(path: str | os.PathLike[str]) -> _native.Network:
    """The network in a file, fully checked."""
    return _translated(_native.Network.in_file, os.fsencode(path))


def in_bytes(content: bytes) -> _native.Network:
    """The network in the content of a file, fully checked."""
    return _translated(_native.Network.in_bytes, bytes(content))


def of(network: Network) -> _native.Network:
    """The same network in the core, which checks it; tensors are shared, not copied."""
    tensors = [
        _given(f"{layer.name}.{role}", np.asarray(array))
        for layer in network.layers
        for role, array in layer.tensors.items()
    ]
    return _translated(_native.Network.of, description(network), tensors)


def back(native: _native.Network) -> Network:
    """What the core holds, as Python objects; tensors are read-only views of its bytes."""
    document = json.loads(native.description)  # which the core has checked
    tensors: list[dict[str, NDArray[Any]]] = [{} for _ in native.forms]
    for layer, role, dtype, shape, octets in native.tensors:
        tensors[layer][role] = octets.view(DTYPES[dtype]).reshape(shape)
    layers = []
    for entry, mine, (shape, bits) in zip(document["layers"], tensors, native.forms, strict=True):
        op, name, inputs = entry.pop("op"), entry.pop("name"), tuple(entry.pop("inputs"))
        layers.append(Layer(op, name, inputs, entry, mine, tuple(shape), bits))
    lists = {key: tuple(document[key]) for key in ("classes", "mean", "std") if key in document}
    return Network(tuple(document["input"]), tuple(layers), source=document.get("source", {}), **lists)


def description(network: Network) -> str:
    """The JSON text that a file holds beside the tensors."""
    document: dict[str, Any] = {"input": list(network.input_shape)}
    for key in ("mean", "std", "classes"):
        if getattr(network, key) is not None:
            document[key] = list(getattr(network, key))
    if network.source:
        _plain(network.source, "source must hold plain JSON values")
        document["source"] = dict(network.source)
    document["layers"] = [
        {"op": layer.op, "name": layer.name, "inputs": list(layer.inputs)}
        | dict(sorted(layer.attributes.items()))
        for layer in network.layers
    ]
    return _plain(document, "the description of a network must hold plain JSON values")


def _plain(value: object, reason: str) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PackedFileError(f"{reason}: {error}") from None


def _given(name: str, array: NDArray[Any]) -> tuple[str, str, list[int], NDArray[np.uint8]]:
    """A tensor as the core takes it; one of a dtype that files do not have goes without its numbers."""
    dtype = NAMES.get(array.dtype.newbyteorder("<"))
    if dtype is None:
        return name, str(array.dtype), list(array.shape), np.empty(0, np.uint8)
    whole = np.require(array, DTYPES[dtype], ["C", "A"])
    return name, dtype, list(array.shape), whole.reshape(-1).view(np.uint8)


def _translated(call: Callable[..., _native.Network], *arguments: Any) -> _native.Network:
    try:
        return call(*arguments)
    except _native.PackedFileError as error:
        raise PackedFileError(str(error)) from None
    except MemoryError:
        raise PackedFileError("there is not enough memory to read it") from None
