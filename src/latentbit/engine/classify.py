"""Images in files to classes, or to the class of every pixel: decode, run on the pixels, softmax. No torch.

An image is resized to the input of the network; where the file notes `resize` in its source, as in training: the
short side to that many pixels, then the centre.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from latentbit import images
from latentbit.engine import NOT_FINITE, Engine
from latentbit.images import ImageError
from latentbit.lbit import Network

BATCH = 32
LARGEST_RESIZE = 1 << 14


class Answer(Protocol):
    """What a network says about images: str() for people, as_json() for programs."""

    def as_json(self) -> str: ...


@dataclass(frozen=True)
class Guess:
    """The most probable classes of one image, best first."""

    path: str
    classes: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __str__(self) -> str:
        named = zip(self.classes, self.probabilities, strict=True)
        return "\n".join([self.path, *(f"  {probability:7.2%}  {name}" for name, probability in named)])

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Regions:
    """What a network that gives a map says about one image: the class of every pixel, and the share of each class."""

    path: str
    classes: tuple[str, ...]
    """Those of at least one pixel, most frequent first."""
    shares: tuple[float, ...]
    pixels: tuple[tuple[int, ...], ...]
    """Rows of class numbers."""

    def __str__(self) -> str:
        size = f"a map of {len(self.pixels)} x {len(self.pixels[0])} pixels"
        named = zip(self.classes, self.shares, strict=True)
        return "\n".join([f"{self.path}  {size}", *(f"  {share:7.2%}  {name}" for name, share in named)])

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Failed:
    """An image that got no classes, and why."""

    path: str
    error: str

    def __str__(self) -> str:
        return f"error: {self.error}"

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Tally:
    """How many images of known class the network got right; those that failed are not among them."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:.2%} ({self.correct} of {self.total} images)"

    def as_json(self) -> str:
        return json.dumps(asdict(self) | {"accuracy": self.accuracy})


def classify(engine: Engine, path: Path, top: int = 5) -> Iterator[Answer]:
    """A guess for an image or each image of a folder; one tally where the folders inside name the classes.

    An image that cannot be used is a Failed among the answers; the others get theirs.
    """
    if path.is_dir() and (labelled := labelled_images(path, engine.network)):
        correct = total = 0
        answers = guesses(engine, [file for file, _ in labelled], top=1)
        for answer, (_, name) in zip(answers, labelled, strict=True):
            if not isinstance(answer, Guess):
                yield answer
            else:
                correct, total = correct + (answer.classes[0] == name), total + 1
        if total:
            yield Tally(correct, total)
        return
    paths = images.find(path) if path.is_dir() else [str(path)]
    if not paths:
        raise ImageError(f"{path} contains no images ({', '.join(sorted(images.SUFFIXES))})")
    yield from guesses(engine, paths, top)


def class_name(network: Network, index: int) -> str:
    return network.classes[index] if network.classes is not None else str(index)


def read_image(path: str | os.PathLike[str], network: Network) -> NDArray[np.uint8]:
    """One file as the pixels (C, H, W) that the network takes; the engine normalises them."""
    _check_takes_files(network)
    n_channels, height, width = network.input_shape
    image = images.read(path, n_channels)
    resize = network.source.get("resize")
    try:
        if isinstance(resize, int) and max(height, width) <= resize <= LARGEST_RESIZE:
            image = images.scale_short_side(image, resize)
        elif image.size != (width, height):
            image = images.scale(image, width, height)
    except (MemoryError, ValueError, OSError) as error:  # an absurd shape
        reason = f"{os.fspath(path)} cannot be scaled ({error or 'too large'}): replace or remove it"
        raise ImageError(reason) from None
    return np.ascontiguousarray(images.cut_centre(images.pixels(image), height, width))


def _check_takes_files(network: Network) -> None:
    if network.input_shape[0] not in (1, 3):
        raise ImageError(f"the network takes {network.input_shape[0]} channels; image files have 1 or 3")


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def guesses(engine: Engine, paths: list[str], top: int = 5) -> Iterator[Guess | Regions | Failed]:
    """The `top` classes of every image, or of its pixels, in order; or why it has none."""
    _check_takes_files(engine.network)
    for start in range(0, len(paths), BATCH):
        yield from _guesses_of_batch(engine, paths[start : start + BATCH], top)


def _guesses_of_batch(engine: Engine, paths: list[str], top: int) -> list[Guess | Regions | Failed]:
    network = engine.network
    decoded = [_image_or_reason(path, network) for path in paths]
    whole = [image for image in decoded if not isinstance(image, str)]
    logits: Iterator[NDArray[np.float32]] = iter(engine(np.stack(whole), "nchw") if whole else ())
    found: list[Guess | Regions | Failed] = []
    for path, image in zip(paths, decoded, strict=True):
        if isinstance(image, str):
            found.append(Failed(path, image))
            continue
        row = next(logits)
        if not np.isfinite(row).all():
            found.append(Failed(path, f"{path}: its logits are not finite, so it has no class; {NOT_FINITE}"))
            continue
        if row.ndim == 3:
            found.append(_regions(network, path, row, top))
            continue
        probabilities = softmax(row)
        best = np.argsort(-row, kind="stable")[:top]
        names = tuple(class_name(network, i) for i in best)
        found.append(Guess(path, names, tuple(float(probabilities[i]) for i in best)))
    return found


def _regions(network: Network, path: str, logits: NDArray[np.float32], top: int) -> Regions:
    pixels = logits.argmax(axis=0)
    counts = np.bincount(pixels.reshape(-1), minlength=len(logits))
    most = [int(i) for i in np.argsort(-counts, kind="stable")[:top] if counts[i]]
    names = tuple(class_name(network, i) for i in most)
    return Regions(
        path, names, tuple(float(counts[i] / pixels.size) for i in most), tuple(map(tuple, pixels.tolist()))
    )


def _image_or_reason(path: str, network: Network) -> NDArray[np.uint8] | str:
    try:
        return read_image(path, network)
    except ImageError as error:
        return str(error)


def labelled_images(folder: Path, network: Network) -> list[tuple[str, str]]:
    """(path, class) of a tree of one folder per class; empty if the folders are no classes of the network."""
    if len(network.output_shape) == 3:  # an image has no one class
        return []
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
        (path, names[entry.name]) for entry in folders if entry.name in names for path in images.find(entry)
    ]
