"""The safetensors container, written: 8 bytes of header length, JSON header, tensor bytes.

Not with the safetensors package, whose writer orders the metadata at random: a network of ours gives the same bytes
every time. The native core reads it (csrc/lbit/container.cpp).
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit.lbit.network import PackedFileError

DTYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "I8": "|i1", "U8": "|u1", "U64": "<u8"}


def container_bytes(metadata: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of a file: same network, same bytes. Wide types first keeps all aligned."""
    names = {np.dtype(code): name for name, code in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts: list[bytes] = []
    at = 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name)):
        array = tensors[name]
        little = array.dtype.newbyteorder("<")
        if little not in names:
            raise PackedFileError(f"tensor {name!r}: a packed network holds no {array.dtype}")
        header[name] = {
            "dtype": names[little],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        parts.append(array.astype(little, order="C", copy=False).tobytes())
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])
