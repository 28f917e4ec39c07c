"""Images in files or shards, decoded by worker processes into shared memory, finished on the device.

The cut of a training image follows from (seed, epoch, image) as in sampling.py; tests cut the centre. An image that
cannot be read is named; where the recipe allows some, its place in training is taken by the next image of the data set,
which is the same for any number of processes, and a test goes without it.
"""

import itertools
import warnings
from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from PIL.Image import Image

from latentbit import images
from latentbit.data import augment, decode, loading, sampling
from latentbit.data.dataset import Batch, DataError, Wanted
from latentbit.data.decode import Cut
from latentbit.data.loading import Slots
from latentbit.data.sampled import Sampled
from latentbit.errors import LatentbitWarning
from latentbit.images import ImageError

MEAN: tuple[float, ...] = (0.485, 0.456, 0.406)
STD: tuple[float, ...] = (0.229, 0.224, 0.225)
IMAGE_SIZE = 224
TRIED = 10_000
"""Images in a row that may be broken before a data set is given up."""


class Stored(Protocol):
    """Images as the bytes of files, by position."""

    @property
    def labels(self) -> np.ndarray: ...

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """What to call it in a message."""
        ...

    def content(self, index: int) -> bytes:
        """The bytes of the file; ImageError if they cannot be had."""
        ...


Split = TypeVar("Split", bound=Stored)


class Filled(NamedTuple):
    """What a worker says of a slot that it has filled."""

    slot: int
    labels: np.ndarray
    """Of the rows that hold an image, from the first on."""
    broken: list[tuple[int, str]]
    """Images that could not be read, and why."""


class _Filler(torch.utils.data.Dataset[Filled]):
    """In a worker: images into slots."""

    def __init__(self, split: Stored, cut: Cut, flip: bool, slots: Slots) -> None:
        self.split, self.cut, self.flip, self.slots = split, cut, flip, slots

    def __getitem__(self, key: tuple[int, tuple[np.ndarray, np.ndarray | None]]) -> Filled:
        slot, (index, draws) = key
        rows = self.slots[slot]
        labels: list[int] = []
        broken: list[tuple[int, str]] = []
        chances = None if draws is None else sampling.uniforms(draws[:, 0] ^ draws[:, 1], augment.N_CHANCES)
        for i, image in enumerate(index.tolist()):
            for tried in range(min(TRIED, len(self.split))):
                standing_in = (image + tried) % len(self.split)
                try:
                    found = self._pixels(standing_in, i, draws, chances)
                except ImageError as error:
                    broken.append((standing_in, str(error)))
                    if draws is None:
                        break
                else:
                    rows[len(labels)] = found
                    labels.append(int(self.split.labels[standing_in]))
                    break
        return Filled(slot, np.array(labels, np.int64), broken)

    def _pixels(
        self, image: int, row: int, draws: np.ndarray | None, chances: np.ndarray | None
    ) -> torch.Tensor:
        name = self.split.name(image)
        content = self.split.content(image)
        try:
            if draws is None or chances is None:
                return decode.for_test(content, name, self.cut)
            found = decode.for_training(content, name, self.cut, draws[row].tolist(), chances[row].tolist())
            return found.flip(2) if self.flip and draws[row, 2] % 2 else found
        except ImageError:
            raise
        except Exception as error:  # an absurd shape, which does not fit memory when it is scaled
            raise ImageError(f"{name} cannot be scaled ({error}): replace or remove it") from None


class Pictures(Sampled[Split]):
    """An image folder or shards; see latentbit.data.dataset.Dataset."""

    def __init__(
        self,
        name: str,
        train: Split,
        test: Split,
        classes: tuple[str, ...],
        data: Wanted,
        device: torch.device,
    ) -> None:
        super().__init__(name, train, test, classes, MEAN, STD, device)
        self.image_size, self.workers, self.flip = data.image_size or IMAGE_SIZE, data.workers, data.flip
        area = augment.Area(data.crop_smallest, data.crop_largest, data.crop_ratio)
        self.cut = Cut(self.image_size, data.resize, data.crop, area, data.exact)
        self.broken_limit = data.broken_limit
        self._broken: dict[tuple[int, int], str] = {}
        if data.resize < self.image_size:
            raise DataError(
                f"data.resize = {data.resize} is smaller than data.image_size = {self.image_size}"
            )

    def original(self, index: int) -> Image:
        """A training image as it is stored."""
        return images.decode(self.train.content(index), self.train.name(index))

    def _batches(
        self, split: Split, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        drawn: list[np.ndarray | None] = []

        def keys() -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
            for index in indices:
                drawn.append(None if draws is None else draws[index])
                yield index, drawn[-1]

        waiting = keys()
        head = next(waiting, None)
        if head is None:
            return
        # The first batch of an epoch is the largest.
        slots = Slots(self.workers, (len(head[0]), 3, self.image_size, self.image_size))
        filler = _Filler(split, self.cut, self.flip, slots)
        keyed = slots.keyed(itertools.chain([head], waiting))
        for filled in loading.loaded(filler, keyed, self.workers, _only):
            self._count(split, filled.broken)
            # A copy to a device from memory that is not pinned has read all of it when it returns: the slot is free.
            pixels = slots[filled.slot][: len(filled.labels)].to(self.device)
            finished = self._finished(pixels, drawn.pop(0))
            slots.release(filled.slot)
            if len(filled.labels):
                yield finished, torch.from_numpy(filled.labels).to(self.device)

    def _count(self, split: Split, broken: list[tuple[int, str]]) -> None:
        """Name each image that is left out, once; more than the recipe allows end it."""
        for index, reason in broken:
            key = (int(split is self.test), index)
            if key in self._broken:
                continue
            self._broken[key] = reason
            if len(self._broken) > self.broken_limit:
                raise DataError(self._too_many())
            warnings.warn(
                f"left out, {len(self._broken)} of at most {self.broken_limit} broken images: {reason}",
                LatentbitWarning,
                stacklevel=2,
            )

    def _too_many(self) -> str:
        reasons = list(self._broken.values())
        if not self.broken_limit:
            return f"{reasons[0]}, or set broken_limit=N to leave out as many as N of them"
        return f"more than broken_limit = {self.broken_limit} images are broken; the last: {reasons[-1]}"


def _only(items: list[Filled]) -> Filled:
    return items[0]
