"""The encodings that the specification of protocol buffers prints."""

from latentbit.export.parts.protobuf import integer, message, packed, real, text, varint


def test_varint() -> None:
    assert varint(1) == b"\x01" and varint(150) == b"\x96\x01"
    assert varint(-2) == b"\xfe" + b"\xff" * 8 + b"\x01"


def test_fields() -> None:
    assert integer(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert message(3, integer(1, 150)) == b"\x1a\x03\x08\x96\x01"
    assert packed(6, [3, 270, 86942]) == b"\x32\x06\x03\x8e\x02\x9e\xa7\x05"
    assert real(2, 1.0) == b"\x15\x00\x00\x80\x3f"
