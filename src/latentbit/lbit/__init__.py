"""The .lbit file: a safetensors container of bits and floats, its layers listed in the metadata.

`read` checks all of it (bytes, graph, shapes, values, limits) before it returns, so that what runs a
Network can trust it. The native core reads and checks, Python writes. docs/format.md describes every byte.
"""

import dataclasses
import os
from pathlib import Path

from latentbit import _native, zoo
from latentbit.atomic import WriteError, atomic_write
from latentbit.lbit import core
from latentbit.lbit.bits import n_words, pack_signs, unpack_signs
from latentbit.lbit.container import container_bytes
from latentbit.lbit.network import INPUT, Layer, Network, PackedFileError, real_vector

__all__ = [
    "INPUT",
    "Layer",
    "Network",
    "PackedFileError",
    "checked",
    "from_bytes",
    "n_words",
    "open_native",
    "pack_signs",
    "read",
    "real_vector",
    "to_bytes",
    "unpack_signs",
    "write",
]

FORMAT = "lbit"


def read(path: str | os.PathLike[str]) -> Network:
    """The network in a .lbit file, or of zoo:NAME, fully checked.

    PackedFileError names the file and what is wrong in it.
    """
    return core.back(open_native(path))


def open_native(path: str | os.PathLike[str]) -> _native.Network:
    """What `read` reads, before it becomes Python objects: enough to run it."""
    path = zoo.located(path)
    if (Path(path) / "recipe.toml").is_file():
        raise PackedFileError(
            f"{os.fspath(path)} is a run directory: pack it first, with `latentbit pack {os.fspath(path)}`, "
            f"which writes {Path(path) / 'model.lbit'}"
        )
    try:
        return core.in_file(path)
    except PackedFileError as error:
        raise PackedFileError(f"{os.fspath(path)}: {error}") from None


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write the file whole or not at all; the same network gives the same bytes."""
    try:
        content = to_bytes(network)
        with atomic_write(Path(path)) as file:
            file.write(content)
    except PackedFileError as error:
        raise PackedFileError(f"{os.fspath(path)}: {error}") from None
    except WriteError as error:
        raise PackedFileError(str(error)) from None


def from_bytes(content: bytes) -> Network:
    """The network in the content of a file: what `read` does once it has the bytes."""
    return core.back(core.in_bytes(content))


def to_bytes(network: Network) -> bytes:
    """The content of the file."""
    native = core.of(network)
    metadata = {"format": FORMAT, "version": native.version, "network": native.description}
    tensors = {
        f"{layer.name}.{role}": array for layer in network.layers for role, array in layer.tensors.items()
    }
    return container_bytes(metadata, tensors)


def checked(network: Network) -> Network:
    """The same network with the shape and kind of every value filled in, or PackedFileError."""
    forms = core.of(network).forms
    layers = tuple(
        dataclasses.replace(layer, shape=tuple(shape), bits=bits)
        for layer, (shape, bits) in zip(network.layers, forms, strict=True)
    )
    return dataclasses.replace(network, layers=layers)
