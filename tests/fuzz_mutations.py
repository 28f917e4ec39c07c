"""Mutations of .lbit files: blind ones (bits, cuts, splices) and ones that know the format.

Those that know it set sizes to the edges of 15, 16, 31 and 63 bits, reshape tensors within their product, rewire the
graph, and write JSON that is deep, long or double.
"""

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

HOSTILE: list[Any] = [
    0, -1, 1, 2, 3, 63, 64, 65, 2**15, 2**20, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30,
    0.5, -0.0, 1e308, True, False, None, "", "input", "x", "\u0000", "\ud800", [], {}, [[]], [0], [1, 1], [1, 1, 1, 1],
    [2**20, 2**20], [-1, -1], [0, 0, 0, 0], ["input"], {"op": "relu", "name": "y", "inputs": ["input"]},
]  # fmt: skip
FLOATS = [float("nan"), float("inf"), -float("inf"), 3.4e38, -3.4e38, 1e-45, 0.0, -0.0, 1e20]
EDGES = [2**power + by for power in (8, 10, 15, 16, 17, 20, 24, 28, 31, 32, 63) for by in (-1, 0, 1)]
SMALL = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129]
PLAIN_OPS = [
    "relu", "hardtanh", "sign", "flatten", "global_avg_pool", "add", "concat",
    "sigmoid", "silu", "hard_sigmoid", "hard_swish", "multiply",
]  # fmt: skip
SET_OPS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "clamp": lambda rng: {"low": rng.choice([-1, 0, 0.5]), "high": rng.choice([0.5, 6, 3e38, -2])},
    "adaptive_avg_pool": lambda rng: {"size": [rng.choice(SMALL), rng.choice(SMALL)]},
    "permute": lambda rng: {"order": rng.sample([0, 1, 2], 3)},
    "reshape": lambda rng: {"size": [rng.choice([1, 6, 12, 36, 216]) for _ in range(3)]},
}
"""Ops without tensors that a mutation can put anywhere; these have attributes."""


def _halves(content: bytes) -> tuple[bytes, bytes]:
    """Header text and data of a valid file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end], content[end:]


def _join(header: bytes, data: bytes) -> bytes:
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_data_bits(rng: random.Random, content: bytes) -> bytes:
    header, data = _halves(content)
    return _join(header, flip_bits(rng, data))


def truncate(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content))]


def splice(rng: random.Random, content: bytes) -> bytes:
    """Copy one stretch over, or into, another place."""
    a, b = sorted(rng.randrange(len(content)) for _ in range(2))
    piece = content[a : min(b, a + 64)]
    at = rng.randrange(len(content))
    return content[:at] + piece + content[at + (len(piece) if rng.random() < 0.5 else 0) :]


def cut(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.randrange(1, 16) :]


def edit_length(rng: random.Random, content: bytes) -> bytes:
    n = rng.choice([0, 8, 16, len(content), len(content) - 8, 2**32, 2**63, 2**64 - 1, rng.randrange(2**20)])
    return n.to_bytes(8, "little") + content[8:]


def edit_text(rng: random.Random, content: bytes) -> bytes:
    """Replace one token of the header's text, keeping the length field right."""
    header, data = _halves(content)
    tokens = list(re.finditer(rb"-?\d+|[\[\]{},:\"]|[a-zA-Z_]+", header))
    token = rng.choice(tokens)
    new = rng.choice(
        [b"", b"NaN", b"1e999", b"-1", b"0", b"[", b"}", b'"', b"9" * 30, b"null", token.group() * 2, b"\xff"]
    )
    return _join(header[: token.start()] + new + header[token.end() :], data)


def edit_json(rng: random.Random, content: bytes) -> bytes:
    """Change one value anywhere in the header or in the network it describes."""
    header, data = _halves(content)
    document = json.loads(header)
    inside = rng.random() < 0.75
    tree = json.loads(document["__metadata__"]["network"]) if inside else document
    for _ in range(rng.choice([1, 1, 2])):
        _edit_tree(rng, tree)
    if inside:
        document["__metadata__"]["network"] = json.dumps(tree)
    return _join(json.dumps(document).encode(), data)


def _edit_tree(rng: random.Random, tree: Any) -> None:
    places = []
    stack = [tree]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        places += [(holder, key) for key in keys]
        stack += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    holder, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.3:
        other, other_key = rng.choice(places)
        if other_key in other if isinstance(other, dict) else other_key < len(other):
            holder[key] = json.loads(json.dumps(other[other_key]))
    elif kind < 0.4 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[key])))
    elif kind < 0.5 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1])
    else:
        holder[key] = json.loads(json.dumps(rng.choice(HOSTILE)))


def edit_numbers(rng: random.Random, content: bytes) -> bytes:
    """Overwrite four aligned bytes of data with a float or integer from the edge of its range."""
    header, data = _halves(content)
    at = 4 * rng.randrange(len(data) // 4)
    if rng.random() < 0.5:
        new = np.float32(rng.choice(FLOATS)).tobytes()
    else:
        new = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1]).to_bytes(4, "little")
    return _join(header, data[:at] + new + data[at + 4 :])


def _open(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header, network and data of a valid file."""
    header, data = _halves(content)
    document = json.loads(header)
    return document, json.loads(document["__metadata__"]["network"]), data


def _close(document: dict[str, Any], network: dict[str, Any], data: bytes) -> bytes:
    document["__metadata__"]["network"] = json.dumps(network)
    return _join(json.dumps(document).encode(), data)


def edit_sizes(rng: random.Random, content: bytes) -> bytes:
    """Sizes of the input, of windows or of groups, to the edge of some width of integer or to a small number."""
    document, network, data = _open(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        size = rng.choice(EDGES if rng.random() < 0.6 else SMALL)
        owners: list[tuple[Any, Any]] = [(network["input"], i) for i in range(3)]
        for layer in network["layers"]:
            for key, value in layer.items():
                if isinstance(value, list) and value and isinstance(value[0], int):
                    owners += [(value, i) for i in range(len(value))]
                elif type(value) is int:
                    owners.append((layer, key))
        owner, key = rng.choice(owners)
        owner[key] = size
    return _close(document, network, data)


def stretch_input(rng: random.Random, content: bytes) -> bytes:
    """An input that is tall, wide or both, which the first layers may well accept."""
    document, network, data = _open(content)
    long = rng.choice([2**10, 2**15 - 1, 2**16 + 1, 2**17, 140_000, 200_000, 2**20])
    sides = (
        [long, rng.choice([1, 2, 6])]
        if rng.random() < 0.8
        else [rng.choice([64, 300]), rng.choice([64, 300])]
    )
    rng.shuffle(sides)
    network["input"][1:] = sides
    return _close(document, network, data)


def reshape_tensor(rng: random.Random, content: bytes) -> bytes:
    """The same number of values in another shape, or of bytes in another type."""
    document, network, data = _open(content)
    entry = document[rng.choice([name for name in document if name != "__metadata__"])]
    shape = entry["shape"]
    kind = rng.randrange(4)
    if kind == 0:
        rng.shuffle(shape)
    elif kind == 1:
        entry["shape"] = [math.prod(shape)] + [1] * rng.randrange(4)
    elif kind == 2 and len(shape) > 1:
        i = rng.randrange(len(shape) - 1)
        for factor in (2, 3, 5, 7):
            if shape[i] % factor == 0:
                shape[i], shape[i + 1] = shape[i] // factor, shape[i + 1] * factor
                break
    else:
        widths = {"F32": 4, "I32": 4, "F16": 2, "I8": 1, "U8": 1, "U64": 8}
        before, after = entry["dtype"], rng.choice(list(widths))
        entry["dtype"] = after
        shape[-1] = max(1, shape[-1] * widths[before] // widths[after])
    return _close(document, network, data)


def resize_tensor(rng: random.Random, content: bytes) -> bytes:
    """One more or one less along an axis of a tensor, its bytes and the offsets of all others to match."""
    document, network, data = _open(content)
    name = rng.choice([name for name in document if name != "__metadata__"])
    entry = document[name]
    begin, end = entry["data_offsets"]
    axis = rng.randrange(len(entry["shape"]))
    size = entry["shape"][axis]
    entry["shape"][axis] = rng.choice([max(1, size - 1), size + 1, 2 * size, rng.choice(SMALL)])
    width = (end - begin) // max(
        1, math.prod([size if i == axis else n for i, n in enumerate(entry["shape"])])
    )
    n_bytes = width * math.prod(entry["shape"])
    if not 0 <= n_bytes <= 1 << 16:  # below 0 where an earlier mutation turned the offsets round
        return content
    piece = (data[begin:end] * (n_bytes // max(1, end - begin) + 1))[:n_bytes]
    for other in document.values():
        offsets = other.get("data_offsets")
        if offsets and other is not entry and offsets[0] >= end:
            offsets[:] = [offset + n_bytes - (end - begin) for offset in offsets]
    entry["data_offsets"] = [begin, begin + n_bytes]
    return _close(document, network, data[:begin] + piece + data[end:])


def edit_graph(rng: random.Random, content: bytes) -> bytes:
    """Rewire: other inputs, layers swapped, dropped, doubled, renamed to a name that is taken, or put in between."""
    document, network, data = _open(content)
    layers = network["layers"]
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(layers))
        names = ["input", *(layer["name"] for layer in layers)]
        kind = rng.randrange(7)
        if kind == 0:
            layers[at]["inputs"][rng.randrange(len(layers[at]["inputs"]))] = rng.choice(names)
        elif kind == 1:
            other = rng.randrange(len(layers))
            layers[at], layers[other] = layers[other], layers[at]
        elif kind == 2:
            gone = layers.pop(at)
            for layer in layers:
                layer["inputs"] = [
                    gone["inputs"][0] if name == gone["name"] else name for name in layer["inputs"]
                ]
        elif kind == 3:
            layers[at]["name"] = rng.choice(names)
        elif kind == 4:
            layers[at]["inputs"] = layers[at]["inputs"] * rng.choice([0, 2, 3, 64])
        else:
            before = layers[at]["inputs"][0]
            op = rng.choice([*PLAIN_OPS, *SET_OPS])
            inputs = [before] * (2 if op in ("add", "concat", "multiply") else 1)
            attributes = SET_OPS[op](rng) if op in SET_OPS else {}
            layers.insert(at, {"op": op, "name": f"n{rng.randrange(100)}", "inputs": inputs} | attributes)
            document["__metadata__"]["version"] = "2"
            layers[at + 1]["inputs"][0] = layers[at]["name"]
    return _close(document, network, data)


def edit_text_of_json(rng: random.Random, content: bytes) -> bytes:
    """Depth, digits, doubled keys and names: what a JSON library may take and we should not."""
    document, network, data = _open(content)
    text = json.dumps(network)
    numbers = list(re.finditer(r"\d+", text))
    number = rng.choice(numbers)
    depth = rng.choice([3, 50, 990, 5000, 100_000])
    digits = rng.choice([5, 19, 20, 21, 309, 4299, 4301, 50_000])
    replacement = rng.choice(
        ["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "9" * digits, "-" + "9" * digits,
         "0." + "9" * digits, f"1e{digits}", f"{number.group()}.0", f"{number.group()}e0", "0" + number.group()]
    )  # fmt: skip
    if rng.random() < 0.2:
        key = rng.choice(re.findall(r'"\w+":', text))
        text = text.replace(key, f"{key} 1, {key}", 1)
    else:
        text = text[: number.start()] + replacement + text[number.end() :]
    document["__metadata__"]["network"] = text
    header = json.dumps(document)
    if rng.random() < 0.2:  # a tensor twice
        name = rng.choice([name for name in document if name != "__metadata__"])
        header = header.replace("{", "{" + f"{json.dumps(name)}: {json.dumps(document[name])}, ", 1)
    return _join(header.encode(), data)


BLIND: list[Callable[[random.Random, bytes], bytes]] = [
    flip_bits, flip_data_bits, truncate, splice, cut, edit_length, edit_text, edit_numbers, edit_json,
]  # fmt: skip
KNOWING: list[Callable[[random.Random, bytes], bytes]] = [
    edit_sizes, edit_sizes, stretch_input, reshape_tensor, resize_tensor, edit_graph, edit_graph, edit_text_of_json,
    flip_data_bits, edit_numbers,
]  # fmt: skip


def mutant(rng: random.Random, content: bytes) -> bytes:
    """The content after one to three mutations."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            content = rng.choice(KNOWING if rng.random() < 0.6 else BLIND)(rng, content)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            content = flip_bits(
                rng, content or b"0"
            )  # an earlier mutation left nothing that this one can parse
    return content
