"""Image files: which they are, and how they become pixels. No torch: the engine reads images here too."""

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
    from PIL import Image

    try:
        with Image.open(path) as file:
            return file.convert("L" if n_channels == 1 else "RGB")
    except Exception as error:  # Pillow raises many kinds; the user needs the path and one line
        reason = f"{os.fspath(path)} cannot be decoded ({error}): replace or remove it"
        raise ImageError(reason) from None


def scale(image: "Image", width: int, height: int) -> "Image":
    """The image at another size, bilinear."""
    from PIL.Image import Resampling

    return image.resize((width, height), Resampling.BILINEAR)


def scale_short_side(image: "Image", side: int) -> "Image":
    """The image with its shorter side at `side` pixels and its proportions kept."""
    factor = side / min(image.size)
    width, height = (max(side, round(length * factor)) for length in image.size)
    return scale(image, width, height)


def pixels(image: "Image") -> NDArray[np.uint8]:
    """The bytes of an image as (channels, height, width)."""
    found = np.asarray(image)
    return found[None] if found.ndim == 2 else found.transpose(2, 0, 1)


def cut_centre(planes: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The middle of (channels, H, W), `height` x `width` large."""
    top, left = (planes.shape[1] - height) // 2, (planes.shape[2] - width) // 2
    return planes[:, top : top + height, left : left + width]
