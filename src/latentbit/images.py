"""Image files: which they are, and how they become pixels. No torch: the engine reads images here too."""

import io
import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentbit.errors import LatentbitError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset((".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"))


class ImageError(LatentbitError):
    """An image, or a folder of images, that cannot be used."""


def find(folder: str | os.PathLike[str]) -> list[str]:
    """The image files at any depth below a folder, sorted."""
    return sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if os.path.splitext(name)[1].lower() in SUFFIXES
    )


def read(path: str | os.PathLike[str], n_channels: int = 3) -> "Image":
    """The image in a file, in colour (3 channels) or grey (1)."""
    return _decoded(path, os.fspath(path), n_channels)


def decode(content: bytes, name: str, n_channels: int = 3) -> "Image":
    """The image in the bytes of a file, as `read` gives it; errors call it `name`."""
    return _decoded(io.BytesIO(content), name, n_channels)


def decode_reduced(content: bytes, name: str, reduction: int) -> "Image":
    """A JPEG in colour at 1/2, 1/4 or 1/8 of its size (rounded up), which takes less time than all of it."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=["JPEG"]) as file:
            file.draft("RGB", (file.width // reduction, file.height // reduction))
            return file.convert("RGB")
    except Exception as error:
        raise ImageError(f"{name} cannot be decoded ({error}): replace or remove it") from None


def size(content: bytes, name: str) -> tuple[int, int]:
    """Width and height of the image in the bytes of a file, which is not decoded."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as file:
            return file.size
    except Exception:
        return decode(content, name).size  # it fails, and says why


def _decoded(source: "str | os.PathLike[str] | io.BytesIO", name: str, n_channels: int) -> "Image":
    from PIL import Image

    try:
        with Image.open(source) as file:
            return eight_bit(file).convert("L" if n_channels == 1 else "RGB")
    except Exception as error:  # Pillow raises many kinds; the user needs the path and one line
        # A file in memory has an address in the message, which nobody can use.
        reason = str(error).replace(f" {source!r}", "") if isinstance(source, io.BytesIO) else error
        raise ImageError(f"{name} cannot be decoded ({reason}): replace or remove it") from None


def eight_bit(image: "Image") -> "Image":
    """The image in a mode of 8 bits per channel that Pillow can turn into grey or colour, scaled by its depth.

    Integers fill their depth: 16 bits unless the file says another number. Floats are 0 (black) to 1 (white).
    Pillow itself would clip both at 255.
    """
    from PIL import Image, ImageCms

    if image.mode == "LAB":
        transform = ImageCms.buildTransform(
            ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB"
        )
        return ImageCms.applyTransform(image, transform) or image
    if image.mode in ("RGBa", "La"):  # colours times opacity
        return image.convert({"RGBa": "RGBA", "La": "LA"}[image.mode])
    if image.mode != "F" and not image.mode.startswith("I"):
        return image
    values = np.asarray(image, np.float64)
    white = 1.0 if image.mode == "F" else 2.0 ** _depth(image) - 1
    if not (values.min() >= 0 and values.max() <= white):  # NaN too
        raise ValueError(f"its values are {values.min():g} to {values.max():g}, not 0 to {white:g}")
    return Image.fromarray(np.rint(values * (255 / white)).astype(np.uint8))


def _depth(image: "Image") -> int:
    """Bits of an image of integers."""
    if image.mode != "I" or image.format in ("PNG", "PPM"):
        deepest = 16  # Pillow holds the 16 bits of these files in 32
    else:
        deepest = 31  # signed
    bits = getattr(image, "tag_v2", {}).get(258, (deepest,))  # BitsPerSample of a TIFF, 12 for instance
    return min(int(bits[0] if isinstance(bits, tuple) else bits), deepest)


def scale(image: "Image", width: int, height: int) -> "Image":
    """The image at another size, bilinear."""
    from PIL.Image import Resampling

    return image.resize((width, height), Resampling.BILINEAR)


def scale_short_side(image: "Image", side: int) -> "Image":
    """The image with its shorter side at `side` pixels and its proportions kept."""
    return scale(image, *short_side_at(image.size, side))


def short_side_at(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height with the shorter of them at `side` and their proportions kept."""
    factor = side / min(size)
    width, height = (max(side, round(length * factor)) for length in size)
    return width, height


def pixels(image: "Image") -> NDArray[np.uint8]:
    """The bytes of an image as (channels, height, width)."""
    found = np.asarray(image)
    return found[None] if found.ndim == 2 else found.transpose(2, 0, 1)


def cut_centre(planes: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The middle of (channels, H, W), `height` x `width` large."""
    top, left = (planes.shape[1] - height) // 2, (planes.shape[2] - width) // 2
    return planes[:, top : top + height, left : left + width]
