"""What each op demands of its inputs, attributes and tensors, and the shape of what it gives.

One function per op, found by its name in OPS. Sizes are Python integers, so nothing can overflow; the limits
keep a hostile file from asking for memory or time out of proportion.
"""

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from oracle.container import DTYPES
from oracle.limits import (
    MAX_NUMBERS,
    MAX_SIZE,
    MAX_TAPS,
    Cost,
    binary_weight_bytes,
    real_weight_bytes,
)

from latentbit.lbit.bits import n_words
from latentbit.lbit.network import Layer, PackedFileError

Shape = tuple[int, ...]
Value = tuple[Shape, bool]
"""Shape, and whether it is bits."""
MAX_FLOAT = float(np.finfo(np.float32).max)


def tail_is_clear(words: NDArray[np.uint64], n_bits: int) -> bool:
    """Whether every bit past the last value of each row is 0."""
    used = n_bits % 64
    return used == 0 or not np.any(words[..., -1] >> np.uint64(used))


class Checker:
    """One layer under examination. Whatever it holds that no check asked for is refused at the end."""

    def __init__(self, layer: Layer, inputs: list[Value]) -> None:
        self.layer, self.inputs = layer, inputs
        self.asked: set[str] = set()
        self.cost = Cost()

    def fail(self, reason: str) -> NoReturn:
        raise PackedFileError(f"layer {self.layer.name!r} ({self.layer.op}): {reason}")

    def finish(self) -> None:
        extra = (set(self.layer.attributes) | set(self.layer.tensors)) - self.asked
        if extra:
            self.fail(f"has {repr(sorted(extra))[1:80].rstrip(']')}, which the op does not know")

    def one(self, *, bits: bool | None = False, rank: int | None = None) -> tuple[int, ...]:
        """The shape of the only input; `bits=None` accepts both kinds."""
        if len(self.inputs) != 1:
            self.fail(f"takes 1 input, has {len(self.inputs)}")
        shape, is_bits = self.inputs[0]
        if bits is not None and is_bits is not bits:
            self.fail(f"its input must be {'bits' if bits else 'real'}, {self.layer.inputs[0]!r} is not")
        if rank is not None and len(shape) != rank:
            self.fail(f"its input must be a {'map' if rank == 3 else 'vector'}, not of shape {list(shape)}")
        return shape

    def integers(self, name: str, n: int, least: int) -> tuple[int, ...]:
        self.asked.add(name)
        values = self.layer.attributes.get(name)
        if not isinstance(values, list | tuple) or len(values) != n:
            self.fail(f"{name} must list {n} integers")
        if not all(type(v) is int and least <= v <= MAX_SIZE for v in values):
            self.fail(f"{name} {repr(list(values))[:80]} is out of range")
        return tuple(values)

    def integer(self, name: str, least: int = 1) -> int:
        self.asked.add(name)
        value = self.layer.attributes.get(name)
        if type(value) is not int or not least <= value <= MAX_SIZE:
            self.fail(f"{name} must be an integer of at least {least}")
        return value

    def number(self, name: str) -> float:
        self.asked.add(name)
        value = self.layer.attributes.get(name)
        if type(value) not in (int, float) or not abs(value) <= MAX_FLOAT:  # type: ignore[arg-type]
            self.fail(f"{name} must be a number that float32 holds")
        return float(value)  # type: ignore[arg-type]

    def tensor(self, role: str, dtypes: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """The tensor of that role, with one of the dtypes ("F32 F16") and the shape (None accepts any size)."""
        self.asked.add(role)
        array = self.layer.tensors.get(role)
        if array is None:
            self.fail(f"tensor {role!r} is missing")
        given = next((name for name, code in DTYPES.items() if array.dtype == code), str(array.dtype))
        if given not in dtypes.split():
            self.fail(f"tensor {role!r} is {given}, expected {dtypes.replace(' ', ' or ')}")
        wanted = [given if size is None else size for size, given in zip(shape, array.shape, strict=False)]
        if array.ndim != len(shape) or list(array.shape) != wanted or 0 in array.shape:
            self.fail(
                f"tensor {role!r} has shape {list(array.shape)}, expected {str(list(shape)).replace('None', 'any')}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            self.fail(f"tensor {role!r} holds NaN or infinity")
        return array

    def flip(self, n: int) -> None:
        if self.tensor("flip", "U8", (n,)).max() > 1:
            self.fail("tensor 'flip' holds something other than 0 and 1")

    def window(self, shape: Shape, kernel: Shape, dilation: Shape = (1, 1)) -> tuple[int, int]:
        """Height and width after sliding a kernel over `shape` with this layer's stride and padding."""
        stride, padding = self.integers("stride", 2, 1), self.integers("padding", 4, 0)
        extent = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        padded = [shape[1] + padding[0] + padding[2], shape[2] + padding[1] + padding[3]]
        # More padding than this would make outputs that see no input at all.
        if any(padding[i] > extent[i % 2] for i in range(4)):
            self.fail(f"padding {list(padding)} is larger than the kernel, which extends over {extent}")
        if any(room < need for room, need in zip(padded, extent, strict=True)):
            self.fail(f"the kernel extends over {extent}, its padded input is only {padded}")
        n_padded = shape[0] * math.prod(padded)
        if n_padded > MAX_NUMBERS:
            self.fail(f"its padded input is {n_padded} numbers, more than {MAX_NUMBERS}")
        self.cost.padded_bytes = 4 * n_padded
        return (padded[0] - extent[0]) // stride[0] + 1, (padded[1] - extent[1]) // stride[1] + 1

    def value(self, value: Value) -> None:
        """Count what the layer gives."""
        shape, bits = value
        n_numbers = math.prod(shape)
        if n_numbers > MAX_NUMBERS:
            self.fail(f"gives {n_numbers} numbers, more than {MAX_NUMBERS}")
        self.cost.value_bytes = 8 * n_words(shape[0]) * math.prod(shape[1:]) if bits else 4 * n_numbers

    def groups(self, n_in: int, n_out: int) -> int:
        groups = self.integer("groups")
        if n_in % groups or n_out % groups:
            self.fail(f"groups {groups} does not divide {n_in} input and {n_out} output channels")
        return groups

    def taps(self, n: int) -> int:
        if n > MAX_TAPS:
            self.fail(f"sums {n} products per output, at most {MAX_TAPS} are exact")
        return n

    def real_weight(self, shape: tuple[int | None, ...]) -> NDArray[Any]:
        weight = self.tensor("weight", "F32 F16 I8", shape)
        if weight.dtype == np.int8:
            scale = self.tensor("weight_scale", "F32", weight.shape[:1])
            largest = np.abs(weight.astype(np.int16)).reshape(len(weight), -1).max(axis=1)
            if np.max(largest * np.abs(scale.astype(np.float64))) > MAX_FLOAT:
                self.fail("tensor 'weight' times 'weight_scale' is more than float32 holds")
        self.tensor("bias", "F32", weight.shape[:1])
        return weight

    def binary_output(self, n_out: int, n_taps: int) -> bool:
        """Scale and bias make real values, threshold and flip make bits; whether it is bits."""
        if "threshold" in self.layer.tensors:
            threshold = self.tensor("threshold", "I32", (n_out,))
            if threshold.min() < -n_taps or threshold.max() > n_taps + 1:
                self.fail(f"tensor 'threshold' leaves [{-n_taps}, {n_taps + 1}], what a dot can be")
            self.flip(n_out)
            return True
        self.tensor("scale", "F32", (n_out,))
        self.tensor("bias", "F32", (n_out,))
        return False


def conv(check: Checker) -> Value:
    shape = check.one(rank=3)
    n_in = shape[0]
    weight = check.real_weight((None, None, None, None))
    n_out, per_group, *kernel = weight.shape
    if per_group * check.groups(n_in, n_out) != n_in:
        check.fail(f"weight of shape {list(weight.shape)} does not fit {n_in} input channels")
    height, width = check.window(shape, tuple(kernel), check.integers("dilation", 2, 1))
    n_taps = check.taps(per_group * math.prod(kernel))
    check.cost.products = n_out * height * width * n_taps
    check.cost.weight_bytes = real_weight_bytes(n_out, n_in // per_group, n_taps)
    return (n_out, height, width), False


def conv_transpose(check: Checker) -> Value:
    n_in, height, width = check.one(rank=3)
    weight = check.real_weight((None, None, None, None))
    n_out, per_group, *kernel = weight.shape
    groups = check.groups(n_in, n_out)
    if per_group * groups != n_in:
        check.fail(f"weight of shape {list(weight.shape)} does not fit {n_in} input channels")
    size = check.integers("size", 2, 1)
    for name, n, least in (("stride", 2, 1), ("padding", 2, 0), ("dilation", 2, 1)):
        check.integers(name, n, least)
    # Every tap of every pixel is computed first, then summed where it belongs.
    n_taps = math.prod(kernel)
    n_spread = n_out * n_taps * height * width
    if n_spread > MAX_NUMBERS:
        check.fail(f"its taps give {n_spread} numbers, more than {MAX_NUMBERS}")
    check.cost.padded_bytes = 4 * n_spread
    check.cost.products = n_spread * per_group + n_out * math.prod(size) * n_taps
    check.cost.weight_bytes = real_weight_bytes(n_out * n_taps, groups, check.taps(per_group * n_taps))
    return (n_out, *size), False


def linear(check: Checker) -> Value:
    (n_in,) = check.one(rank=1)
    n_out = check.real_weight((None, n_in)).shape[0]
    check.cost.products = n_out * check.taps(n_in)
    check.cost.weight_bytes = real_weight_bytes(n_out, 1, n_in)
    return (n_out,), False


def sign(check: Checker) -> Value:
    shape = check.one()
    if "threshold" in check.layer.tensors:
        check.tensor("threshold", "F32", shape[:1])
    if "flip" in check.layer.tensors:
        check.flip(shape[0])
    return shape, True


def binary_conv(check: Checker) -> Value:
    shape = check.one(bits=True, rank=3)
    n_in = shape[0]
    if check.integer("in_channels") != n_in:
        check.fail(f"in_channels is {check.layer.attributes['in_channels']}, its input has {n_in}")
    bits = check.tensor("bits", "U64", (None, None, None, None))
    n_out, *kernel, words = bits.shape
    groups = check.groups(n_in, n_out)
    per_group = n_in // groups
    if words != n_words(per_group) or not tail_is_clear(bits, per_group):
        check.fail(f"tensor 'bits' must hold {per_group} signs per row in {n_words(per_group)} words, tail 0")
    n_taps = check.taps(per_group * math.prod(kernel))
    height, width = check.window(shape, tuple(kernel), check.integers("dilation", 2, 1))
    check.cost.products = n_out * height * width * n_taps
    check.cost.weight_bytes = binary_weight_bytes(n_out, groups, per_group, math.prod(kernel))
    return (n_out, height, width), check.binary_output(n_out, n_taps)


def binary_linear(check: Checker) -> Value:
    (n_in,) = check.one(bits=True, rank=1)
    if check.integer("in_features") != n_in:
        check.fail(f"in_features is {check.layer.attributes['in_features']}, its input has {n_in}")
    bits = check.tensor("bits", "U64", (None, n_words(n_in)))
    if not tail_is_clear(bits, n_in):
        check.fail(f"tensor 'bits' must hold {n_in} signs per row, tail 0")
    n_out = bits.shape[0]
    check.cost.products = n_out * check.taps(n_in)
    check.cost.weight_bytes = binary_weight_bytes(n_out, 1, n_in, 1)
    return (n_out,), check.binary_output(n_out, n_in)


def affine(check: Checker) -> Value:
    shape = check.one()
    check.tensor("scale", "F32", shape[:1])
    check.tensor("bias", "F32", shape[:1])
    return shape, False


def prelu(check: Checker) -> Value:
    shape = check.one()
    check.tensor("slope", "F32", shape[:1])
    return shape, False


def relu(check: Checker) -> Value:
    return check.one(), False


def clamp(check: Checker) -> Value:
    if check.number("low") > check.number("high"):
        check.fail("low is more than high")
    return check.one(), False


def max_pool(check: Checker) -> Value:
    shape = check.one(bits=None, rank=3)
    kernel = check.integers("kernel", 2, 1)
    height, width = check.window(shape, kernel)
    stride, padding = check.integers("stride", 2, 1), check.integers("padding", 4, 0)
    for axis, outputs in enumerate((height, width)):
        # Every window must see a value: the first must end, and the last begin, inside the map.
        if padding[axis] >= kernel[axis] or (outputs - 1) * stride[axis] - padding[axis] >= shape[axis + 1]:
            check.fail(f"padding {list(padding)} makes windows that see no value")
    check.cost.products = shape[0] * height * width * math.prod(kernel)
    return (shape[0], height, width), check.inputs[0][1]


def avg_pool(check: Checker) -> Value:
    check.asked.add("count_include_pad")
    if not isinstance(check.layer.attributes.get("count_include_pad"), bool):
        check.fail("count_include_pad must be true or false")
    check.one()
    return max_pool(check)


def adaptive_avg_pool(check: Checker) -> Value:
    n, *shape = check.one(rank=3)
    size = check.integers("size", 2, 1)
    # Windows of neighbours share at most one row and one column.
    check.cost.products = n * math.prod(a + b for a, b in zip(shape, size, strict=True))
    return (n, *size), False


def resize(check: Checker) -> Value:
    n, *shape = check.one(rank=3)
    size = []
    for axis, limit in zip(("row", "column"), shape, strict=True):
        at = check.tensor(axis, "I32", (None,))
        share = check.tensor(f"{axis}_share", "F32", at.shape)
        if at.min() < 0 or at.max() >= limit or share.min() < 0 or share.max() > 1:
            check.fail(f"tensor {axis!r} leaves [0, {limit - 1}], or '{axis}_share' leaves [0, 1]")
        size.append(len(at))
    return (n, *size), False


def global_avg_pool(check: Checker) -> Value:
    return check.one(rank=3)[:1], False


def flatten(check: Checker) -> Value:
    shape = check.one(bits=None, rank=3)
    return (math.prod(shape),), check.inputs[0][1]


def reshape(check: Checker) -> Value:
    before = check.one()
    after = check.integers("size", 3, 1)
    if math.prod(after) != math.prod(before):
        check.fail(f"cannot make {list(after)} of {list(before)}")
    return after, False


def permute(check: Checker) -> Value:
    shape, order = check.one(rank=3), check.integers("order", 3, 0)
    if sorted(order) != [0, 1, 2]:
        check.fail(f"order {list(order)} is no order of the axes 0, 1 and 2")
    return tuple(shape[axis] for axis in order), False


def multiply(check: Checker) -> Value:
    shapes = [shape for shape, bits in check.inputs if not bits]
    if len(shapes) != 2 or len(check.inputs) != 2 or shapes[1] not in (shapes[0], (*shapes[0][:1], 1, 1)):
        check.fail(
            f"takes 2 real inputs of one shape, or (C, H, W) and (C, 1, 1), has "
            f"{[list(shape) for shape, _ in check.inputs]}"
        )
    return shapes[0], False


def add(check: Checker) -> Value:
    if len(check.inputs) != 2 or check.inputs[0] != check.inputs[1] or check.inputs[0][1]:
        check.fail(f"takes 2 real inputs of one shape, has {[list(shape) for shape, _ in check.inputs]}")
    return check.inputs[0]


def concat(check: Checker) -> Value:
    shapes = [shape for shape, bits in check.inputs if not bits and len(shape) == 3]
    if len(shapes) < 2 or len(shapes) != len(check.inputs) or len({shape[1:] for shape in shapes}) != 1:
        check.fail("takes 2 or more real maps of one height and width")
    return (sum(shape[0] for shape in shapes), *shapes[0][1:]), False


OPS: dict[str, Callable[[Checker], Value]] = {
    rule.__name__: rule
    for rule in (
        conv, linear, sign, binary_conv, binary_linear, affine, prelu, relu,
        max_pool, avg_pool, global_avg_pool, flatten, add, concat,
        clamp, multiply, conv_transpose, resize, adaptive_avg_pool, reshape, permute,
    )
}  # fmt: skip
CURVES = ("sigmoid", "silu", "hard_sigmoid", "hard_swish")
OPS |= dict.fromkeys(("hardtanh", *CURVES), relu)
OPS_OF_VERSION_2 = frozenset(
    {"clamp", "multiply", "conv_transpose", "resize", "adaptive_avg_pool", "reshape", "permute", *CURVES}
)
