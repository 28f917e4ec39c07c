"""Images in files to classes: decode with Pillow, normalise as the packed file says, run, softmax. No torch.

An image is resized to the input of the network; where the file notes `resize` in its source, as in training: the
short side to that many pixels, then the centre.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latentbit.engine import Engine
from latentbit.errors import LatentbitError
from latentbit.lbit import Network

SUFFIXES = frozenset((".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"))
BATCH = 32


class ImageError(LatentbitError):
    """An image, or a folder of them, that this network can not take."""


@dataclass(frozen=True)
class Guess:
    """The most probable classes of one image, best first."""

    path: str
    classes: tuple[str, ...]
    probabilities: tuple[float, ...]


def class_name(network: Network, index: int) -> str:
    return network.classes[index] if network.classes is not None else str(index)


def read_image(path: str | os.PathLike[str], network: Network) -> NDArray[np.float32]:
    """One file as the normalised (C, H, W) that the network takes."""
    from PIL import Image

    n_channels, height, width = network.input_shape
    if n_channels not in (1, 3):
        raise ImageError(f"the network takes {n_channels} channels; image files have 1 or 3")
    try:
        with Image.open(path) as file:
            image = file.convert("L" if n_channels == 1 else "RGB")
    except Exception as error:  # Pillow raises many kinds for what it can not decode
        raise ImageError(f"{os.fspath(path)} can not be decoded: {error}") from None
    resize = network.source.get("resize")
    if isinstance(resize, int) and max(height, width) <= resize <= 1 << 14:
        scale = resize / min(image.size)
        image = image.resize(
            [max(resize, round(side * scale)) for side in image.size], Image.Resampling.BILINEAR
        )
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    elif image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, np.float32) / 255
    planes = pixels[None] if n_channels == 1 else pixels.transpose(2, 0, 1)
    mean = np.array(network.mean or [0.0] * n_channels, np.float32)[:, None, None]
    std = np.array(network.std or [1.0] * n_channels, np.float32)[:, None, None]
    return np.ascontiguousarray((planes - mean) / std)


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def guesses(engine: Engine, paths: list[str], top: int = 5) -> Iterator[Guess]:
    """The `top` classes of every image, in order."""
    network = engine.network
    for start in range(0, len(paths), BATCH):
        some = paths[start : start + BATCH]
        probabilities = softmax(engine(np.stack([read_image(path, network) for path in some])))
        for path, row in zip(some, probabilities, strict=True):
            best = np.argsort(-row, kind="stable")[:top]
            yield Guess(path, tuple(class_name(network, i) for i in best), tuple(float(row[i]) for i in best))


def images_in(folder: Path) -> list[str]:
    """Image files at any depth, sorted."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return sorted(str(path) for path in found)


def labelled_images(folder: Path, network: Network) -> list[tuple[str, str]]:
    """(path, class) of a tree of one folder per class; empty if the folders are no classes of the network."""
    folders = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    names = {entry.name: entry.name for entry in folders}
    if network.classes is None:
        # Without names the folders stand for the outputs in order, as training on such a tree numbers them.
        names = (
            {entry.name: str(i) for i, entry in enumerate(folders)}
            if len(folders) == network.n_outputs
            else {}
        )
    elif not names.keys() <= set(network.classes):
        names = {}
    return [
        (path, names[entry.name]) for entry in folders if entry.name in names for path in images_in(entry)
    ]


def score_dataset(engine: Engine, name: str) -> tuple[int, int]:
    """Correct answers and images of the test set of `digits`, `cifar10` or `cifar100`."""
    names = ("digits", "cifar10", "cifar100")
    if name not in names:
        raise ImageError(f"{name}: no such file or folder, and not a data set ({', '.join(names)})")
    from latentbit import data, recipes  # the data sets come as torch tensors

    n_channels, height, width = engine.network.input_shape
    chosen = recipes.Data(dataset=name, image_size=height)  # type: ignore[arg-type]
    dataset = data.open(chosen)
    if (dataset.in_channels, dataset.num_classes) != (
        n_channels,
        engine.network.n_outputs,
    ) or height != width:
        raise ImageError(
            f"{name} has {dataset.in_channels} channels and {dataset.num_classes} classes; the network takes "
            f"{n_channels}x{height}x{width} and gives {engine.network.n_outputs}"
        )
    correct = total = 0
    for images, labels in dataset.test_batches(100):
        correct += int((engine(images.numpy()).argmax(1) == labels.numpy()).sum())
        total += len(labels)
    return correct, total
