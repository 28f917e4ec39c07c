"""What 16-bit maps do to the logits: the steps of the C program in NumPy, with its rounding of every map that it keeps.

A map is stored as IEEE 754 halves: 11 significant bits, to nearest, ties to even. Two things are simpler than in
the standard, for machines without instructions for it: magnitudes that round to less than 2^-14 become 0, and those
above 65504 become 65504.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit.engine import Engine
from latentbit.export.parts.c_plan import Plan, Step, Value
from latentbit.export.parts.macs import macs, real_weight
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError
from latentbit.lbit import Network, unpack_signs

Real = NDArray[np.float32]

MOST_IMAGES, FEWEST_IMAGES = 32, 8
MACS = 16_000_000_000
"""Of all images together: a few seconds. Large networks are measured on fewer images."""
LIMIT = 0.01
"""Of the largest logit, on average. A single image says little: most keep all of their signs and hardly move, a few
have a value so close to a threshold that a sign tips, and what follows from it."""
LARGEST = 65504.0


def halves(x: Real) -> Real:
    """The values as they come back from memory."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    magnitude = (magnitude + np.uint32(0xFFF) + ((magnitude >> 13) & 1)) & np.uint32(0xFFFFE000)
    magnitude = np.minimum(magnitude, np.uint32(0x477FE000))
    magnitude[magnitude < np.uint32(0x38800000)] = 0
    return (magnitude | (bits & np.uint32(0x80000000))).view(np.float32)


def check(report: Report, network: Network, plan: Plan) -> None:
    """Say how far the logits move; ExportError, with the map that is at fault, where that is too far."""
    n = max(FEWEST_IMAGES, min(MOST_IMAGES, MACS // max(sum(macs(network)), 1)))
    images = _images(network, n)
    expected = Engine(network, isa="scalar")(images)
    kept = [step for step in plan.steps if step.real is not None and not step.wide]
    found, peaks = _run_in_parts(plan, images, kept)
    for step in kept:
        if peaks[step] > LARGEST:
            raise ExportError(
                f"--real 16: values of {_name(step)} reach {peaks[step]:.3g} and 16 bit end at 65504. Leave --real 16 "
                "away: maps are then kept in 32 bit"
            )
    moved = _moved(found, expected)
    if not moved.mean() <= LIMIT:
        few, exact = images[: n // 4], expected[: n // 4]
        alone = {step: float(_moved(_run_in_parts(plan, few, [step])[0], exact).mean()) for step in kept}
        worst = max(kept, key=lambda step: alone[step])
        raise ExportError(
            f"--real 16: logits move by {moved.mean():.1%} of the largest on average of {n} random images, more "
            f"than {LIMIT:.0%}. {_name(worst)} alone moves them by {alone[worst]:.1%}. Leave --real 16 away: maps are "
            "then kept in 32 bit"
        )
    changed = int((found.argmax(axis=1) != expected.argmax(axis=1)).sum())
    report.add(
        "16-bit maps",
        f"on {n} random images logits move by {moved.mean():.1e} of the largest on average, {moved.max():.1e} at "
        f"most; {changed} change class",
        difference=float(moved.max()),
        mean_difference=float(moved.mean()),
        changed_classes=changed,
        checked_images=n,
    )


def _name(step: Step) -> str:
    return step.value.name if step.value is not None else step.layer.name


def _moved(found: Real, expected: Real) -> Real:
    """Of each image: the largest difference of a logit, relative to the largest logit of all."""
    largest = max(float(np.abs(expected).max()), 1e-30)
    return np.asarray(np.abs(found - expected).max(axis=1) / largest)


def _images(network: Network, n: int) -> Real:
    """Random bytes, normalised as in training: noise by turns with squares of 4 x 4 pixels, whose sums are larger."""
    rng, (channels, height, width) = np.random.default_rng(0), network.input_shape
    pixels = rng.integers(0, 256, (n, channels, height, width))
    pixels[1::2] = pixels[1::2, :, np.arange(height) // 4 * 4][..., np.arange(width) // 4 * 4]
    mean = np.asarray(network.mean or [0.5] * channels, np.float32).reshape(-1, 1, 1)
    std = np.asarray(network.std or [0.25] * channels, np.float32).reshape(-1, 1, 1)
    return ((pixels.astype(np.float32) / np.float32(255) - mean) / std).astype(np.float32)


def _run_in_parts(plan: Plan, images: Real, rounded: Collection[Step]) -> tuple[Real, dict[Step, float]]:
    """Two images at a time, which bounds the memory."""
    parts = [run(plan, images[i : i + 2], rounded) for i in range(0, len(images), 2)]
    peaks = {step: max(found[step] for _, found in parts) for step in parts[0][1]}
    return np.concatenate([logits for logits, _ in parts]), peaks


def run(plan: Plan, images: Real, rounded: Collection[Step]) -> tuple[Real, dict[Step, float]]:
    """Logits (N, C) with the maps of these steps in 16 bit, and the largest magnitude in the map of every step."""
    real: dict[Step, Real] = {}
    signs: dict[Step, Real] = {}
    peaks: dict[Step, float] = {}

    def read(value: Value) -> Real:
        if value.step is None:
            return images
        found = signs[value.step] if value.bits else real[value.step]
        return np.concatenate([found] * value.repeats, axis=1)

    logits = images
    for step in plan.steps:
        found = _made(step, [read(value) for value in step.inputs] or [images])
        if step.run in ("binary_conv_bits", "bits_pool", "flatten_bits"):
            signs[step] = found
            continue
        if step.affine is not None:
            found = found * _per_channel(step.affine.tensors["scale"]) + _per_channel(
                step.affine.tensors["bias"]
            )
        if step.residual is not None:
            found = found + read(step.residual)
        if step.activation is not None:
            found = _activated(step, found)
        if step.sign is not None:
            # Of the value itself, not of what is kept of it.
            tensors = step.sign.tensors
            below = found < _per_channel(tensors.get("threshold", np.zeros(1, np.float32)))
            signs[step] = _as_signs(below ^ (_per_channel(tensors.get("flip", np.zeros(1, np.uint8))) > 0))
        peaks[step] = float(np.abs(found).max())
        real[step] = halves(found) if step in rounded else found
        if step.value is not None and step.value.name == plan.output:
            logits = real[step].reshape(len(images), -1)
    return logits, peaks


def _made(step: Step, inputs: list[Real]) -> Real:
    """The values of a step before anything else happens to them."""
    layer, x = step.layer, inputs[0]
    if step.run == "conv":
        weight = real_weight(layer)
        weight = weight.reshape(*weight.shape, 1, 1) if weight.ndim == 2 else weight
        return _convolved(step, x, weight) + _per_channel(layer.tensors["bias"])
    if step.run in ("binary_conv", "binary_conv_bits"):
        n_in = layer.attributes.get("in_channels", layer.attributes.get("in_features"))
        weight = unpack_signs(layer.tensors["bits"], n_in // layer.attributes.get("groups", 1)).astype(
            np.float32
        )
        weight = weight.reshape(*weight.shape, 1, 1) if weight.ndim == 2 else weight.transpose(0, 3, 1, 2)
        dots = _convolved(step, x, weight)
        if step.run == "binary_conv":
            return dots * _per_channel(layer.tensors["scale"]) + _per_channel(layer.tensors["bias"])
        below = dots < _per_channel(layer.tensors["threshold"])
        return _as_signs(below ^ (_per_channel(layer.tensors["flip"]) > 0))
    if step.run in ("max_pool", "bits_pool"):
        return _windows(step, x, _kernel(step), -np.inf).max(axis=(4, 5))
    if step.run == "avg_pool":
        return _averaged(step, x)
    if step.run in ("flatten", "flatten_bits"):
        return x.reshape(len(x), -1, 1, 1)
    if step.run == "concat":
        return np.concatenate(inputs, axis=1)
    return x  # each_pixel, read_image


def _activated(step: Step, x: Real) -> Real:
    layer = step.activation
    assert layer is not None
    if layer.op == "prelu":
        return np.where(x < 0, x * _per_channel(layer.tensors["slope"]), x)
    limits: dict[str, Callable[[], tuple[Any, Any]]] = {
        "relu": lambda: (0.0, None),
        "hardtanh": lambda: (-1.0, 1.0),
        "clamp": lambda: (layer.attributes["low"], layer.attributes["high"]),
    }
    return np.clip(x, *limits[layer.op]()).astype(np.float32)


def _per_channel(values: Any) -> Any:
    return np.asarray(values).reshape(-1, 1, 1)


def _as_signs(below: Any) -> Real:
    return np.where(below, np.float32(-1), np.float32(1))


def _kernel(step: Step) -> tuple[int, int]:
    height, width = step.layer.attributes.get("kernel", step.inputs[0].shape[1:])
    return height, width


def _windows(
    step: Step, x: Real, kernel: tuple[int, int], outside: float, padding: tuple[int, int] | None = None
) -> Real:
    """(N, C, h, w, kernel h, kernel w): what every output of the step sees."""
    attributes = step.layer.attributes
    top, left = padding if padding is not None else attributes.get("padding", (0, 0))[:2]
    stride, dilation = attributes.get("stride", (1, 1)), attributes.get("dilation", (1, 1))
    reach = [dilation[i] * (kernel[i] - 1) + 1 for i in (0, 1)]
    ends = [(step.shape[1 + i] - 1) * stride[i] + reach[i] for i in (0, 1)]
    bottom, right = max(ends[0] - top - x.shape[2], 0), max(ends[1] - left - x.shape[3], 0)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=outside)
    seen = np.lib.stride_tricks.sliding_window_view(padded[:, :, : ends[0], : ends[1]], reach, axis=(2, 3))
    return seen[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def _convolved(step: Step, x: Real, weight: Real) -> Real:
    """Weights (O, I, kh, kw)."""
    groups, parts = step.layer.attributes.get("groups", 1), []
    for part, rows in zip(np.split(x, groups, axis=1), np.split(weight, groups), strict=True):
        seen = _windows(step, part, (rows.shape[2], rows.shape[3]), 0.0)
        parts.append(np.tensordot(seen, rows, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2))
    return np.concatenate(parts, axis=1)


def _averaged(step: Step, x: Real) -> Real:
    attributes, kernel = step.layer.attributes, _kernel(step)
    counted = np.ones((1, 1, *x.shape[2:]), np.float32)
    if attributes.get("count_include_pad", False):
        top, left, bottom, right = attributes["padding"]
        counted = np.pad(counted, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=1)
        counts = _windows(step, counted, kernel, 0.0, padding=(0, 0)).sum(axis=(4, 5))
    else:
        counts = _windows(step, counted, kernel, 0.0).sum(axis=(4, 5))
    return _windows(step, x, kernel, 0.0).sum(axis=(4, 5), dtype=np.float32) * (np.float32(1) / counts)
