"""The safetensors container, read with suspicion: 8 bytes of header length, JSON header, tensor bytes.

The same rules as csrc/lbit/container.cpp and csrc/lbit/json.cpp, with Python's own JSON reader.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit.lbit.network import PackedFileError

DTYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "I8": "|i1", "U8": "|u1", "U64": "<u8"}
MAX_FILE_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 22
MAX_RANK = 4
MAX_NAME = 240
MAX_DEPTH = 100
MAX_DIGITS = 20
"""Of an integer: more than 64 bits can hold."""
SYNTAX = "(syntax)"
"""Instead of json's words and ours, which differ, on text that is no JSON."""


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

    end = _first_too_deep(text)
    try:
        return json.loads(
            text[:end], object_pairs_hook=unique, parse_int=integer, parse_float=finite, parse_constant=refuse
        )
    except json.JSONDecodeError as error:
        if error.pos == end and error.msg == "Expecting value":
            raise PackedFileError(f"{what} is nested too deeply") from None
        raise PackedFileError(f"{what} is not valid JSON: {SYNTAX}") from None
    except ValueError as error:
        raise PackedFileError(f"{what} is not valid JSON: {error}") from None


def _first_too_deep(text: str) -> int | None:
    """Where the first list or object begins that has MAX_DEPTH others around it."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"?|[][{}]', text, re.DOTALL):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MAX_DEPTH:
            return token.start()
    return None


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
