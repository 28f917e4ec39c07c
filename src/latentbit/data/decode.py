"""The bytes of an image file to the pixels that a network sees.

The fast way decodes a JPEG at 1/2, 1/4 or 1/8 where the result still has a pixel for each that the network sees, cuts
before it scales, and scales by torch. `exact` decodes all of it and scales by Pillow. Evaluation is always exact: a
packed network that reads image files does the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from latentbit import images
from latentbit.data.augment import Area, Box

try:
    import simplejpeg
except ImportError:  # it is in latentbit[train]; without it Pillow gives the same pixels, in more time
    simplejpeg = None


@dataclass(frozen=True)
class Cut:
    """How a training image becomes a square of `size` pixels."""

    size: int
    resize: int
    """Short side before a crop of kind "random", and of every test image."""
    crop: Literal["random", "random_resized"] = "random"
    area: Area = Area()
    exact: bool = False


def for_test(content: bytes, name: str, cut: Cut) -> Tensor:
    """(3, size, size) bytes: the short side to `resize`, then the centre."""
    scaled = images.pixels(images.scale_short_side(images.decode(content, name), cut.resize))
    return torch.from_numpy(np.ascontiguousarray(images.cut_centre(scaled, cut.size, cut.size)))


def for_training(
    content: bytes, name: str, cut: Cut, place: Sequence[int], chances: Sequence[float]
) -> Tensor:
    """(3, size, size) bytes, cut at `place` (top, left: integers >= 0) or by `chances` (see augment.Area)."""
    width, height = _size(content, name)
    if cut.crop == "random_resized":
        return _resized_box(content, name, cut, cut.area.box(width, height, chances))
    wide, high = images.short_side_at((width, height), cut.resize)
    top, left = place[0] % (high - cut.size + 1), place[1] % (wide - cut.size + 1)
    if cut.exact:
        whole = torch.from_numpy(images.pixels(images.scale(images.decode(content, name), wide, high)).copy())
        return whole[:, top : top + cut.size, left : left + cut.size]
    pixels, reduction = _decoded(content, name, _reduction(min(width, height), cut.resize))
    if reduction == 1:
        return _scaled(pixels, high, wide)[:, top : top + cut.size, left : left + cut.size]
    x, y = width / wide / reduction, height / high / reduction
    return _cut(pixels, (left * x, top * y, (left + cut.size) * x, (top + cut.size) * y), cut.size)


def _resized_box(content: bytes, name: str, cut: Cut, box: Box) -> Tensor:
    left, top, right, bottom = box
    if cut.exact:
        part = images.scale(images.decode(content, name).crop(box), cut.size, cut.size)
        return torch.from_numpy(images.pixels(part).copy())
    pixels, reduction = _decoded(content, name, _reduction(min(right - left, bottom - top), cut.size))
    if reduction == 1:
        return _scaled(pixels[top:bottom, left:right], cut.size, cut.size)
    left, top = left // reduction * reduction, top // reduction * reduction  # whole pixels that are inside
    inside = pixels[top // reduction : -(-bottom // reduction), left // reduction : -(-right // reduction)]
    edges = (box[0] - left, box[1] - top, right - left, bottom - top)
    return _cut(inside, tuple(edge / reduction for edge in edges), cut.size)  # type: ignore[arg-type]


def _cut(pixels: np.ndarray, box: tuple[float, float, float, float], size: int) -> Tensor:
    """(3, size, size) of a box whose edges are between pixels, which torch cannot express."""
    scaled = Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR, box=box)
    return torch.from_numpy(images.pixels(scaled).copy())


def _scaled(pixels: np.ndarray, height: int, width: int) -> Tensor:
    """(H, W, 3) bytes as (3, height, width): Pillow's filter, and within 1 of its values."""
    planes = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    return F.interpolate(planes, (height, width), mode="bilinear", antialias=True)[0]


def _reduction(side: int, wanted: int) -> int:
    """1, 2, 4 or 8: by how much `side` can be divided and still be as long as `wanted`."""
    return next(by for by in (8, 4, 2, 1) if side >= by * wanted or by == 1)


def _is_jpeg(content: bytes) -> bool:
    return content[:3] == b"\xff\xd8\xff"


def _size(content: bytes, name: str) -> tuple[int, int]:
    """Width and height, from the head of the file."""
    if simplejpeg is not None and _is_jpeg(content):
        try:
            height, width, _, _ = simplejpeg.decode_jpeg_header(content)
            return width, height
        except ValueError:
            pass  # Pillow tells what is wrong
    return images.size(content, name)


def _decoded(content: bytes, name: str, reduction: int) -> tuple[np.ndarray, int]:
    """(H, W, 3) bytes that can be written to, and by what they are reduced: files that are no JPEG never are."""
    if _is_jpeg(content):
        try:
            if simplejpeg is not None:
                return _by_turbojpeg(content, reduction), reduction
        except ValueError:
            pass  # CMYK, or something is wrong with it: Pillow knows more kinds, and says what it is
        if reduction > 1:
            return np.array(images.decode_reduced(content, name, reduction)), reduction
    return np.array(images.decode(content, name)), 1


def _by_turbojpeg(content: bytes, reduction: int) -> np.ndarray:
    if reduction == 1:
        return simplejpeg.decode_jpeg(content)
    height, width, _, _ = simplejpeg.decode_jpeg_header(content)
    # Asked for less it would take 5/8 or 7/8, for which there is no fast code.
    return simplejpeg.decode_jpeg(
        content, min_height=-(-height // reduction), min_width=-(-width // reduction)
    )
