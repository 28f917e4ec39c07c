"""Data of the user's own: a function that a recipe names and that returns two torch data sets.

    dataset = "my_data.py:make_data"

    def make_data() -> latentbit.OwnData:
        return latentbit.OwnData(train, test, classes=10)

Order, batches, crops and normalisation are those of every other data set. Random transforms of the user's own are
seeded by (seed, epoch, image), so that a resumed run sees what an uninterrupted one does.
"""

import hashlib
import inspect
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils import data as torch_data
from torch.utils.data import RandomSampler, SequentialSampler

from latentbit.data import augment, loading
from latentbit.data.dataset import Batch, DataError, Wanted
from latentbit.data.in_memory import InMemory, Pixels
from latentbit.data.sampled import Sampled
from latentbit.imports import find_import, without_folder

MEASURED = 512
"""Training images that mean and std are taken from, where they are not given."""
CHECKED = 64
"""Images of each split that the checksum covers."""

Item = tuple[Tensor, int]


@dataclass(frozen=True)
class OwnData:
    """Images to train on and to test on, as torch data sets of (image, label) or as loaders of such.

    Images are bytes, floats from 0 to 1, or PIL images: (C, H, W) or (H, W), square, all of one size. Leave the
    normalisation to latentbit: a packed network then knows it, and runs on image files.
    """

    train: Any
    test: Any
    classes: int | Sequence[str]
    """How many, or their names."""
    mean: Sequence[float] = ()
    """Of each channel, for values from 0 to 1. Default: measured on 512 training images."""
    std: Sequence[float] = ()


def open(data: Wanted, device: torch.device) -> "InMemory | OwnImages":
    """Call the function that `data.dataset` names, and make a data set of what it returns."""
    called = without_folder(data.dataset)
    function = find_import(data.dataset)
    takes = inspect.signature(function).parameters if callable(function) else None
    if takes is None:
        raise DataError(
            f"{called} is not a function: it must return latentbit.OwnData(train, test, classes=...)"
        )
    known = {"root": data.root, "image_size": data.image_size}
    try:
        found = function(**{key: value for key, value in known.items() if key in takes and value})
    except OSError as error:
        raise DataError(f"{called} cannot read its images: {error}") from error
    if not isinstance(found, OwnData):
        raise DataError(
            f"{called} returned {type(found).__name__}: it must return latentbit.OwnData(train, test, classes=...)"
        )
    names = tuple(map(str, range(found.classes) if isinstance(found.classes, int) else found.classes))
    train, test = (_items(getattr(found, split), names, f"{called}, {split}") for split in ("train", "test"))
    mean, std = _normalisation(found, train, called)
    size = train[0][0].shape[-1]
    if test[0][0].shape != train.shape:
        raise DataError(f"{called}: test images are {tuple(test[0][0].shape)}, training images {train.shape}")
    if data.image_size not in (0, size):
        raise DataError(
            f"{called} gives images of {size} pixels, and the recipe wants image_size = {data.image_size}: leave "
            "image_size out, or give the function an argument image_size and scale the images there"
        )
    if isinstance(found.train, torch_data.TensorDataset) and isinstance(found.test, torch_data.TensorDataset):
        pixels = [_pixels(split, device) for split in (train, test)]
        if None not in pixels:
            return InMemory(called, pixels[0], pixels[1], names, mean, std, data.pad, data.flip)  # type: ignore[arg-type]
    return OwnImages(called, train, test, names, mean, std, data, device)


class _Items:
    """One split: (image, label) by position, each checked; random transforms follow from a seed."""

    def __init__(self, items: Any, classes: int, called: str) -> None:
        self.items, self.classes, self.called = items, classes, called
        self.shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, key: int | tuple[int, int]) -> Item:
        index, seed = (key, 0) if isinstance(key, int) else key
        with _seeded(seed):
            image, label = self.items[index][:2]
        planes, where = _planes(image), f"{self.called}[{index}]"
        if planes is None or planes.dim() != 3 or planes.shape[1] != planes.shape[2]:
            had = "no image" if planes is None else f"an image of shape {tuple(planes.shape)}"
            raise DataError(f"{where} is {had}: images must be (C, H, W) or (H, W) and square")
        if planes.is_floating_point() and not (planes.min() >= 0 and planes.max() <= 1):
            raise DataError(
                f"{where} has values from {planes.min():.3g} to {planes.max():.3g}: give bytes, or floats from 0 to "
                "1, and leave the normalisation to latentbit (mean= and std= of OwnData)"
            )
        self.shape = self.shape or tuple(planes.shape)
        if planes.shape != self.shape:
            raise DataError(
                f"{where} is of shape {tuple(planes.shape)}, others are of {self.shape}: scale them"
            )
        if not 0 <= int(label) < self.classes:
            raise DataError(
                f"{where} has label {int(label)}, but {self.classes} classes are numbered from 0 to {self.classes - 1}"
            )
        return planes, int(label)

    @property
    def labels(self) -> np.ndarray:
        """Of all images; read from the images where the data set has no list of them."""
        for name in ("targets", "labels"):
            if len(listed := getattr(self.items, name, ())) == len(self):
                return np.asarray(listed, np.int64)
        return np.array([self[i][1] for i in range(len(self))], np.int64)


def _items(given: Any, names: tuple[str, ...], called: str) -> _Items:
    """The split of a data set or of a loader, whose order and batches the recipe replaces."""
    if isinstance(given, torch_data.DataLoader):
        if type(given.sampler) not in (SequentialSampler, RandomSampler):
            raise DataError(
                f"{called}: its loader has a {type(given.sampler).__name__}, but the recipe gives the order of images: "
                "give the data set, with the images as often as they shall be seen"
            )
        given = given.dataset
    if not (hasattr(given, "__len__") and hasattr(given, "__getitem__")):
        raise DataError(
            f"{called}: {type(given).__name__} has no length or no [index], which training in a fixed order needs"
        )
    if len(given) == 0:
        raise DataError(f"{called} has no images")
    return _Items(given, len(names), called)


def _planes(image: Any) -> Tensor | None:
    """An image as (C, H, W), bytes or floats."""
    if isinstance(image, Image.Image):
        image = np.asarray(image if image.mode == "L" else image.convert("RGB"))
        image = image if image.ndim == 2 else image.transpose(2, 0, 1)
    if isinstance(image, np.ndarray):
        image = torch.from_numpy(np.array(image))
    if not isinstance(image, Tensor):
        return None
    image = image.float() if image.is_floating_point() else image
    if not image.is_floating_point() and image.dtype != torch.uint8:
        return None
    return image[None] if image.dim() == 2 else image


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The generators that transforms draw from, seeded; what drew from them before goes on undisturbed."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002, transforms use it
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])


def _normalisation(found: OwnData, train: _Items, called: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    channels = train[0][0].shape[0]
    for name in ("mean", "std"):
        if len(getattr(found, name)) not in (0, channels):
            raise DataError(
                f"{called}: {name} has {len(getattr(found, name))} values, the images {channels} channels"
            )
    if found.mean and found.std:
        return tuple(map(float, found.mean)), tuple(map(float, found.std))
    chosen = np.unique(np.linspace(0, len(train) - 1, MEASURED).astype(int)).tolist()
    values = torch.stack([_bytes(train[i][0]) for i in chosen]).double() / 255
    mean, std = values.mean((0, 2, 3)), values.std((0, 2, 3)).clamp(min=1e-3)
    rounded = [tuple(round(x, 4) for x in v.tolist()) for v in (mean, std)]
    return tuple(found.mean) or rounded[0], tuple(found.std) or rounded[1]


def _bytes(image: Tensor) -> Tensor:
    """From 0 to 255, whole numbers or not."""
    return image * 255 if image.is_floating_point() else image


def _pixels(split: _Items, device: torch.device) -> Pixels | None:
    """Tensors of bytes are used as they are; others image by image."""
    images, labels = split.items.tensors[:2]
    if images.dtype != torch.uint8 or images.dim() != 4:
        return None
    for extreme in (labels.argmin(), labels.argmax()):
        split[int(extreme)]  # its label is checked
    return Pixels(images.to(device), labels.to(device, torch.int64))


class _Told(torch_data.Dataset[Item | str]):
    """For workers: what is wrong with an image is a value, which leaves the worker in one line."""

    def __init__(self, split: _Items) -> None:
        self.split = split

    def __getitem__(self, key: tuple[int, int]) -> Item | str:
        try:
            return self.split[key]
        except DataError as error:
            return str(error)


def _collate(items: list[Item | str]) -> Batch | str:
    broken = [item for item in items if isinstance(item, str)]
    if broken:
        return broken[0]
    images, labels = zip(*items, strict=True)
    return torch.stack([_bytes(image) for image in images]), torch.tensor(labels)


class OwnImages(Sampled[_Items]):
    """Read image by image, by worker processes; see latentbit.data.dataset.Dataset."""

    def __init__(
        self,
        name: str,
        train: _Items,
        test: _Items,
        classes: tuple[str, ...],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        data: Wanted,
        device: torch.device,
    ) -> None:
        super().__init__(name, train, test, classes, mean, std, device)
        self.pad, self.flip = data.pad, data.flip
        self.image_size = train[0][0].shape[-1]
        # Processes that are not forked would have to find the user's file by the name of a module.
        self.workers = data.workers if multiprocessing.get_start_method() == "fork" else 0

    def checksum(self) -> str:
        """sha256 of 64 images and labels of each split, evenly spread: a large set takes hours to read."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for i in np.unique(np.linspace(0, len(split) - 1, CHECKED).astype(int)).tolist():
                image, label = split[i]
                total.update(f"{label} {tuple(image.shape)} {image.dtype}".encode())
                total.update(image.contiguous().numpy().tobytes())
        return f"sha256:{total.hexdigest()}"

    def _batches(
        self, split: _Items, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        def keys() -> Iterator[list[tuple[int, int]]]:
            for index in indices:
                taken.append(index)
                yield [(i, 0 if draws is None else int(draws[i, 0])) for i in index.tolist()]

        taken: list[np.ndarray] = []
        on_cuda = self.device.type == "cuda"
        for found in loading.loaded(_Told(split), keys(), self.workers, _collate, pin=on_cuda):
            if isinstance(found, str):
                raise DataError(found)
            images, labels = (tensor.to(self.device) for tensor in found)
            index = taken.pop(0)
            mine = None if draws is None else draws[index]
            if mine is not None:
                images = augment.crop(images, torch.from_numpy(mine).to(self.device), self.pad, self.flip)
            yield self._finished(images, mine), labels
