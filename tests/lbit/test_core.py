"""The native reader against the oracle in Python: the same files pass, the same problem is named."""

import dataclasses
import json
import sys
import unicodedata

import lbit_examples
import numpy as np
import pytest
from oracle import limits, reader, rules

from latentbit import _native, lbit
from latentbit.lbit import Layer, Network, PackedFileError, core


def _file(description: str, header: str = "", data: bytes = b"") -> bytes:
    metadata = {"format": "lbit", "version": "1", "network": description}
    text = f'{{"__metadata__":{json.dumps(metadata)}{header}}}'.encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def _problem(content: bytes) -> str | None:
    try:
        lbit.from_bytes(content)
    except PackedFileError as error:
        return str(error)
    return None


LAYERS = '"layers":[{"op":"global_avg_pool","name":"g","inputs":["input"]}]'


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "null", "", " ", "{", "}", "{,}",
        '{"a"}', '{"a":}', '{"a":1,}', "[1,]", "[,1]", "[1 2]", "[01]", "[1.]",
        "[.5]", "[-]", "[+1]", "[1e]", "[1e5]", "[1E+400]",
        "[-1e400]", "[1e-400]", "[0x1]", "[NaN]", "[-Infinity]", "[Infinit]",
        "[nul]", "[True]", "[1]x", "\ufeff[]", "[\x00]", '["\t"]',
        '["\\t"]', '["\\x"]', '["\\u12"]', '["\\u12G4"]', '["', '["\\',
        "[12345678901234567890]", "[123456789012345678901]", "[-123456789012345678901]", "[1234567890123456789012]",
        '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "[" * 100 + "]" * 100,
        "[" * 101 + "]" * 101, "[1 " + "[" * 101, '["[[[[', "{1:2}",
        "[" * 100 + '{"a":1}' + "]" * 100, "//", "[1]//", "\n\t\r [ ] ",
    ],
)  # fmt: skip
def test_json_is_judged_alike(text: str) -> None:
    found = _problem(_file(text))
    assert found is not None and reader.same_problem(found, reader.problem(_file(text)))


@pytest.mark.parametrize(
    "value",
    [
        "0.5", "-0.0", "1e22", "1e16", "123456789012345680.0",
        "1.5e-05", "0.0001", "1e-07", "5e-324", "1.7976931348623157e308",
        "0.1", "100.0", "3.14159", "-12", "null",
        "true", "{}", "[]", '{"a":[1,"b",null,false,2.5]}', '"it\'s"', '"\\"it\'s\\""',
        '"\\u00e9\\u4e2d\\ud83d\\ude00"', '"\\ud83d"',
        '"\\ude00\\ud83d"', '"\\u200b\\u0000\\u007f\\u00ad\\\\"', "99999999999999999999",
        '"' + "\u00e9" * 100 + '"', "[" * 90 + "1" + "]" * 90,
    ],
)  # fmt: skip
def test_messages_show_values_alike(value: str) -> None:
    for text in (
        f'{{"input":[{value}],{LAYERS}}}',
        f'{{"input":[1,1,1],"layers":[{value}]}}',
        f'{{"input":[1,1,1],"layers":[{{"op":{value},"name":"a","inputs":["input"]}}]}}',
        f'{{"input":[1,1,1],"layers":[{{"op":"relu","name":"a","inputs":[{value}]}}]}}',
        f'{{"input":[1,1,1],"layers":[{{"op":"relu","name":{value},"inputs":["input"]}}]}}',
        f'{{"input":[1,1,1],"mean":[{value}],{LAYERS}}}',
        f'{{"input":[1,1,1],"classes":[{value}],{LAYERS}}}',
        f'{{"input":[1,1,1],"source":{{"x":{value}}},{LAYERS}}}',
    ):
        content = _file(text)
        assert reader.same_problem(_problem(content), reader.problem(content))


def test_printable_is_what_unicode_says() -> None:
    for number in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(number))
        if category in ("Cn", "Cs"):  # not assigned when this Python was made; no letter by itself
            continue
        printable = number == 32 or category not in reader.UNPRINTABLE
        assert _native.is_printable(chr(number)) == printable, hex(number)


@pytest.mark.parametrize(
    "octets",
    [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\x80", b"\xc3",
     b"\xf8\x88\x80\x80\x80", b"\xe2\x82", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf", b"\xc3\xa9"],
)  # fmt: skip
def test_utf_8_is_judged_alike(octets: bytes) -> None:
    text = b'{"__metadata__":{"x":"' + octets + b'"}}'
    text += b" " * (-len(text) % 8)
    content = len(text).to_bytes(8, "little") + text
    assert reader.same_problem(_problem(content), reader.problem(content))


def test_shapes_and_kinds_are_those_of_the_oracle() -> None:
    for network in (lbit_examples.tiny(), lbit_examples.every_op(), lbit_examples.version_2()):
        expected = reader.checked(network)
        assert [(layer.shape, layer.bits) for layer in network.layers] == [
            (layer.shape, layer.bits) for layer in expected.layers
        ]


def test_the_ops_are_those_of_the_oracle() -> None:
    assert {op: "2" if op in rules.OPS_OF_VERSION_2 else "1" for op in rules.OPS} == core.OPS


def test_the_limits_are_those_of_the_oracle() -> None:
    assert core.LIMITS["bytes"] == limits.MAX_BYTES and core.LIMITS["numbers"] == limits.MAX_NUMBERS
    assert core.LIMITS["products"] == limits.MAX_PRODUCTS and core.LIMITS["taps"] == limits.MAX_TAPS
    assert core.LIMITS["size"] == limits.MAX_SIZE and core.LIMITS["layers"] == reader.MAX_LAYERS


def test_arrays_that_lie_oddly_are_read_as_they_are() -> None:
    network = lbit_examples.every_op()
    odd = []
    for layer in network.layers:
        tensors = {}
        for role, array in layer.tensors.items():
            shifted = (
                np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
            )
            tensors[role] = np.asfortranarray(shifted)
        odd.append(Layer(layer.op, layer.name, layer.inputs, layer.attributes, tensors))
    assert lbit.to_bytes(dataclasses.replace(network, layers=tuple(odd))) == lbit.to_bytes(network)


def test_what_json_cannot_say_is_refused() -> None:
    layer = Layer("global_avg_pool", "g", ("input",), {"x": np.int64(1)})
    with pytest.raises(PackedFileError, match="plain JSON values: .*int64"):
        lbit.checked(Network((1, 1, 1), (layer,)))
    with pytest.raises(PackedFileError, match="source must hold plain JSON values"):
        lbit.checked(Network((1, 1, 1), (Layer("global_avg_pool", "g", ("input",)),), source={"x": {1}}))


def test_a_network_outlives_the_bytes_it_came_from() -> None:
    network = lbit.from_bytes(lbit.to_bytes(lbit_examples.every_op()))
    expected = {name: array.copy() for name, array in lbit_examples.every_op()["stem"].tensors.items()}
    [bytearray(1 << 16) for _ in range(64)]
    for name, array in network["stem"].tensors.items():
        assert np.array_equal(array, expected[name])
