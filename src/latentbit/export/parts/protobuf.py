"""The wire format of protocol buffers, as much of it as an ONNX file needs: numbers, bytes, messages in messages.

Sixty lines instead of a dependency of 20 MB. https://protobuf.dev/programming-guides/encoding
"""

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    """Seven bits at a time, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def real(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def message(field: int, content: bytes) -> bytes:
    """A message, bytes or text within another message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    return message(field, value.encode("utf-8"))


def packed(field: int, values: Iterable[int]) -> bytes:
    return message(field, b"".join(varint(value) for value in values))
