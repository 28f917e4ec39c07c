"""The safetensors container, read with suspicion: 8 bytes of header length, JSON header, tensor bytes.

Written here rather than with the safetensors package, whose writer orders the metadata at random (a network
of ours gives the same bytes every time) and whose reader does not bound what a header may claim.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit.lbit.network import PackedFileError

DTYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "I8": "|i1", "U8": "|u1", "U64": "<u8"}
MAX_FILE_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 22
MAX_RANK = 4
MAX_NAME = 240
MAX_DIGITS = 20
"""Of an integer: more than 64 bits can hold."""


@dataclass(frozen=True)
class _Span:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def parse_json(text: str, what: str) -> Any:
    """JSON as the RFC has it: no NaN, no number that overflows, no key twice, no depth bomb."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key appears twice in one object")
        return found

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"the number {digits[:40]} is too large")
        return number

    def integer(digits: str) -> int:
        if len(digits) > MAX_DIGITS + 1:
            raise ValueError(f"the number {digits[:MAX_DIGITS]}... has {len(digits)} digits")
        return int(digits)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(
            text, object_pairs_hook=unique, parse_int=integer, parse_float=finite, parse_constant=refuse
        )
    except RecursionError:
        raise PackedFileError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise PackedFileError(f"{what} is not valid JSON: {error}") from None


def file_bytes(path: Path) -> NDArray[np.uint8]:
    """The whole file as one aligned, read-only buffer; tensors are views of it.

    Not a memory map: the process would die of SIGBUS if somebody cut the file short while it is mapped.
    """
    # Non-blocking, or opening a pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as f:
            status = os.fstat(f.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise PackedFileError("not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise PackedFileError(f"{status.st_size} bytes; more than {MAX_FILE_BYTES}")
            content = np.empty(status.st_size, np.uint8)
            if f.readinto(content.data) != len(content):
                raise PackedFileError("the file shrank while it was read")
    except OSError as error:
        raise PackedFileError(f"cannot be read: {error.strerror or error}") from None
    content.flags.writeable = False
    return content


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_FILE_BYTES


def _span(name: str, entry: object) -> _Span:
    """One entry of the header, checked by itself."""
    if len(name) > MAX_NAME:
        raise PackedFileError(f"tensor {name[:40]!r}...: a name of {len(name)} letters, more than {MAX_NAME}")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise PackedFileError(f"tensor {name!r}: its entry must hold dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise PackedFileError(f"tensor {name!r}: dtype {repr(dtype)[:40]} is not one of {', '.join(DTYPES)}")
    if not isinstance(shape, list) or not 1 <= len(shape) <= MAX_RANK:
        raise PackedFileError(f"tensor {name!r}: the shape must list 1 to {MAX_RANK} sizes")
    if not all(_is_size(size) and size > 0 for size in shape):
        raise PackedFileError(f"tensor {name!r}: the shape {repr(shape)[:80]} has a size out of range")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(o) for o in offsets):
        raise PackedFileError(f"tensor {name!r}: data_offsets must be two byte offsets")
    span = _Span(name, np.dtype(DTYPES[dtype]), tuple(shape), *offsets)
    n_bytes = math.prod(span.shape) * span.dtype.itemsize
    if span.end - span.begin != n_bytes:
        raise PackedFileError(
            f"tensor {name!r}: {dtype} {shape} is {n_bytes} bytes, its offsets hold {span.end - span.begin}"
        )
    if span.begin % span.dtype.itemsize:
        raise PackedFileError(f"tensor {name!r}: byte {span.begin} is not aligned for {dtype}")
    return span


def open_container(content: NDArray[np.uint8]) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """The metadata and the tensors in the bytes of a file, every byte accounted for."""
    if len(content) < 8:
        raise PackedFileError(f"{len(content)} bytes are too few for a packed network")
    n_header = int.from_bytes(content[:8].tobytes(), "little")
    if n_header > MAX_HEADER_BYTES or n_header > len(content) - 8:
        if content[8:9].tobytes() not in (b"", b"{"):
            raise PackedFileError(
                "this is not a packed network: `latentbit pack RUN` makes one, a .lbit file"
            )
        raise PackedFileError(
            f"the header claims {n_header} bytes, the file holds {len(content) - 8} after its length "
            f"(and a header has at most {MAX_HEADER_BYTES}); is it a .lbit file, and complete?"
        )
    if n_header % 8:
        raise PackedFileError(f"the header length {n_header} is not a multiple of 8")
    try:
        text = content[8 : 8 + n_header].tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise PackedFileError("the header is not UTF-8 text") from None
    header = parse_json(text, "the header")
    if not isinstance(header, dict):
        raise PackedFileError("the header is not a JSON object")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise PackedFileError("the header has no __metadata__ of strings")
    data = content[8 + n_header :]
    return metadata, _tensors(data, [_span(name, entry) for name, entry in header.items()])


def _tensors(data: NDArray[np.uint8], spans: list[_Span]) -> dict[str, NDArray[Any]]:
    """Views of the data; the spans must tile it without a gap, an overlap or a rest."""
    at = 0
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        if span.begin != at:
            raise PackedFileError(f"tensor {span.name!r}: starts at byte {span.begin}, expected at {at}")
        at = span.end
    if at != len(data):
        raise PackedFileError(f"the tensors end at byte {at}, the data has {len(data)}")
    return {s.name: data[s.begin : s.end].view(s.dtype).reshape(s.shape) for s in spans}


def container_bytes(metadata: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The file that open_container opens: same content, same bytes. Wide types first keeps all aligned."""
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
