"""Read and check a packed file in plain Python: the independent opinion that the native reader is compared with.

problem(content)               None, or what is wrong with the file
same_problem(found, expected)  whether the native reader says the same
"""

import dataclasses
import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oracle.container import SYNTAX, open_container, parse_json
from oracle.limits import MAX_BYTES, MAX_NUMBERS, MAX_PRODUCTS
from oracle.rules import OPS, OPS_OF_VERSION_2, Checker, Value

from latentbit.lbit import INPUT, Layer, Network, PackedFileError

FORMAT = "lbit"
VERSIONS = ("1", "2")
MAX_LAYERS = 10_000
MAX_INPUTS = 64
MAX_NAME = 200
UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}


def from_bytes(content: bytes) -> Network:
    """The network in the content of a file, checked here."""
    aligned = np.frombuffer(content, np.uint8).copy()
    aligned.flags.writeable = False
    return _parse(*open_container(aligned))


def problem(content: bytes) -> str | None:
    """What is wrong with the content of a file."""
    try:
        from_bytes(content)
    except PackedFileError as error:
        return str(error)
    return None


def same_problem(found: str | None, expected: str | None) -> bool:
    """Word for word, but for text that is no JSON at all, where each reader has words of its own."""
    if found is not None and expected is not None and expected.endswith(SYNTAX):
        return found.startswith(expected.removesuffix(SYNTAX))
    return found == expected


def version_of(network: Network) -> str:
    """The lowest version of the format that can hold a network."""
    gives_a_map = len(network.output_shape) == 3
    return VERSIONS[gives_a_map or any(layer.op in OPS_OF_VERSION_2 for layer in network.layers)]


def checked(network: Network) -> Network:
    """The same network with the shape and kind of every value filled in, or PackedFileError."""
    shape = network.input_shape
    if len(shape) != 3 or not all(type(size) is int and 0 < size <= MAX_NUMBERS for size in shape):
        raise PackedFileError(
            f"input {repr(list(shape))[:80]} is not [channels, height, width], each from 1 to {MAX_NUMBERS}"
        )
    if not 1 <= len(network.layers) <= MAX_LAYERS:
        raise PackedFileError(f"{len(network.layers)} layers; 1 to {MAX_LAYERS} are possible")
    values: dict[str, Value] = {INPUT: (tuple(shape), False)}
    layers = []
    if math.prod(shape) > MAX_NUMBERS:
        raise PackedFileError(f"input {list(shape)} is {math.prod(shape)} numbers, more than {MAX_NUMBERS}")
    n_bytes, n_products = 4 * math.prod(shape), 0
    for layer in network.layers:
        check = _check(layer, values)
        layers.append(dataclasses.replace(layer, shape=values[layer.name][0], bits=values[layer.name][1]))
        n_bytes += check.cost.n_bytes
        n_products += check.cost.products
        if layer is network.layers[-1] and len(values[layer.name][0]) == 3:
            n_bytes += check.cost.value_bytes  # a map leaves the engine in another order than it has inside
        if n_bytes > MAX_BYTES:
            check.fail(f"values and weights up to here take {n_bytes} bytes, more than {MAX_BYTES}")
        if n_products > MAX_PRODUCTS:
            check.fail(f"the layers up to here take {n_products} products, more than {MAX_PRODUCTS}")
    _check_ends(network, layers)
    return dataclasses.replace(network, layers=tuple(layers))


def _check(layer: Layer, values: dict[str, Value]) -> Checker:
    """Check one layer and add its value to those of the layers before it."""
    if not _is_text(layer.name) or not 0 < len(layer.name) <= MAX_NAME:
        raise PackedFileError(f"layer name {repr(layer.name)[:80]} is not 1 to {MAX_NAME} printable letters")
    if not isinstance(layer.op, str) or layer.op not in OPS:
        raise PackedFileError(f"layer {layer.name!r}: unknown op {repr(layer.op)[:40]}")
    if layer.name in values:
        raise PackedFileError(f"layer {layer.name!r}: the name is taken by an earlier layer or the input")
    if not 1 <= len(layer.inputs) <= MAX_INPUTS:
        raise PackedFileError(f"layer {layer.name!r}: {len(layer.inputs)} inputs, not 1 to {MAX_INPUTS}")
    for name in layer.inputs:
        if not isinstance(name, str) or name not in values:
            raise PackedFileError(f"layer {layer.name!r}: its input {repr(name)[:80]} is no earlier layer")
    check = Checker(layer, [values[name] for name in layer.inputs])
    value = OPS[layer.op](check)
    check.finish()
    check.value(value)
    values[layer.name] = value
    return check


def _check_ends(network: Network, layers: list[Layer]) -> None:
    """The output, layers that lead nowhere, and what describes input and output."""
    used = {name for layer in layers for name in layer.inputs}
    for layer in layers[:-1]:
        if layer.name not in used:
            raise PackedFileError(f"layer {layer.name!r}: nothing uses its output")
    last = layers[-1]
    if last.bits:
        raise PackedFileError(f"layer {last.name!r}: the output of a network must be real")
    if network.classes is not None:
        if len(network.classes) != last.shape[0] or not all(_is_text(name) for name in network.classes):
            raise PackedFileError(f"classes must be {last.shape[0]} printable names, one per output")
    for key in ("mean", "std"):
        numbers = getattr(network, key)
        if numbers is None:
            continue
        if len(numbers) != network.input_shape[0] or not all(_is_number(v) for v in numbers):
            raise PackedFileError(f"{key} must be {network.input_shape[0]} numbers, one per input channel")
        if key == "std" and not all(v > 0 for v in numbers):
            raise PackedFileError("std must be positive")
    try:
        json.dumps(network.source, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise PackedFileError("source must hold plain JSON values") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and all(
        c == " " or unicodedata.category(c) not in UNPRINTABLE for c in value
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # type: ignore[arg-type]


def _parse(metadata: Mapping[str, str], tensors: dict[str, NDArray[Any]]) -> Network:
    if metadata.get("format") != FORMAT:
        raise PackedFileError("a safetensors file, but not a packed network (format is not lbit)")
    version = metadata.get("version", "")
    if version not in VERSIONS:
        raise PackedFileError(f"version {version[:20]!r}; this program reads {' and '.join(VERSIONS)}")
    document = parse_json(metadata.get("network", ""), "the network description")
    if not isinstance(document, dict):
        raise PackedFileError("the network description is not a JSON object")
    extra = set(document) - {"input", "layers", "classes", "mean", "std", "source"}
    if extra:
        raise PackedFileError(
            f"the network description has {repr(sorted(extra))[:80]}, unknown to this program"
        )
    lists = {key: _list(document, key) for key in ("input", "layers", "classes", "mean", "std")}
    source = document.get("source", {})
    if not isinstance(source, dict):
        raise PackedFileError("source must be a JSON object")
    owned: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in tensors.items():
        owner, _, role = name.rpartition(".")
        owned.setdefault(owner, {})[role] = array
    layers = tuple(_layer(entry, owned) for entry in lists["layers"] or ())
    if owned:
        raise PackedFileError(f"tensors of {next(iter(owned))[:80]!r} belong to no layer")
    shape: Any = lists["input"] or ()
    network = checked(Network(shape, layers, lists["classes"], lists["mean"], lists["std"], source))
    if version_of(network) > version:
        raise PackedFileError(
            f"says version {version}, but holds what came with version {version_of(network)}"
        )
    return network


def _list(document: dict[str, Any], key: str) -> tuple[Any, ...] | None:
    if key not in document:
        return None
    if not isinstance(document[key], list):
        raise PackedFileError(f"{key} of the network description must be a list")
    return tuple(document[key])


def _layer(entry: object, owned: dict[str, dict[str, NDArray[Any]]]) -> Layer:
    """One entry of the layer list, with its tensors taken out of `owned`."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise PackedFileError(f"a layer is not a JSON object with a name: {repr(entry)[:80]}")
    attributes = dict(entry)
    op, name, inputs = attributes.pop("op", None), attributes.pop("name"), attributes.pop("inputs", None)
    if not isinstance(inputs, list):
        raise PackedFileError(f"layer {name[:80]!r}: inputs must be a list of names")
    return Layer(str(op), name, tuple(inputs), attributes, owned.pop(name, {}))
