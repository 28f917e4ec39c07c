"""A graph of ONNX nodes as it grows, and the bytes of its file. Field numbers are those of onnx.proto3."""

from typing import Any

import numpy as np

from latentbit.export.parts.protobuf import integer, message, packed, real, text

OPSET = 18
"""The first with BitwiseAnd."""
IR_VERSION = 8
"""That of opset 18; runtimes refuse what is newer than they are."""

FLOAT, BOOL = 1, 9
DTYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": 7, "bool": BOOL, "float16": 10}


class Graph:
    """Values are names; every method that adds a node returns the name of what it gives."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.initializers: list[bytes] = []
        self.domains = {"": OPSET}
        self.taken: set[str] = {"image", "logits"}

    def fresh(self, name: str) -> str:
        found, i = name, 2
        while found in self.taken:
            found, i = f"{name}:{i}", i + 1
        self.taken.add(found)
        return found

    def constant(self, name: str, array: Any) -> str:
        """An array that is part of the file."""
        array = np.ascontiguousarray(array)
        name = self.fresh(name)
        dims = packed(1, array.shape) if array.shape else b""
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        content = dims + integer(2, DTYPES[array.dtype.name]) + text(8, name) + message(9, little.tobytes())
        self.initializers.append(content)
        return name

    def node(self, op: str, name: str, inputs: list[str], *, domain: str = "", **attributes: Any) -> str:
        out = self.fresh(name)
        self._append(op, out, inputs, out, domain, attributes)
        return out

    def output(self, value: str) -> None:
        """The value becomes the output of the graph."""
        self._append("Identity", "logits", [value], "logits", "", {})

    def _append(
        self, op: str, name: str, inputs: list[str], out: str, domain: str, attributes: dict[str, Any]
    ) -> None:
        content = b"".join(text(1, value) for value in inputs) + text(2, out) + text(3, name) + text(4, op)
        content += b"".join(message(5, _attribute(key, value)) for key, value in attributes.items())
        self.nodes.append(content + (text(7, domain) if domain else b""))

    def file(
        self,
        name: str,
        input_shape: tuple[int, ...],
        output_shape: tuple[int, ...],
        notes: dict[str, str],
        batch: str | int = "N",
    ) -> bytes:
        """The model: one input `image` (N, C, H, W), one output `logits` (N, classes), or
        a map of them; N may be a number."""
        graph = b"".join(message(1, node) for node in self.nodes) + text(2, name)
        graph += b"".join(message(5, tensor) for tensor in self.initializers)
        graph += message(11, _value("image", (batch, *input_shape)))
        graph += message(12, _value("logits", (batch, *output_shape)))
        model = integer(1, IR_VERSION) + text(2, "latentbit") + message(7, graph)
        for domain, version in self.domains.items():
            model += message(8, (text(1, domain) if domain else b"") + integer(2, version))
        for key, value in notes.items():
            model += message(14, text(1, key) + text(2, value))
        return model


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, float):
        return text(1, name) + real(2, value) + integer(20, 1)
    if isinstance(value, int):
        return text(1, name) + integer(3, value) + integer(20, 2)
    return text(1, name) + packed(8, value) + integer(20, 7)


def _value(name: str, shape: tuple[int | str, ...]) -> bytes:
    dims = b"".join(message(1, text(2, d) if isinstance(d, str) else integer(1, d)) for d in shape)
    tensor = integer(1, FLOAT) + message(2, dims)
    return text(1, name) + message(2, message(1, tensor))
