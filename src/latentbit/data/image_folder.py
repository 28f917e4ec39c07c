"""Images decoded from files by worker processes: short side to `resize`, a square cut out, mirrored or not.

The cut of a training image follows from (seed, epoch, image) as in sampling.py; tests cut the centre.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as torch_data

from latentbit import images
from latentbit.data import folders
from latentbit.data.dataset import Batch, DataError
from latentbit.data.folders import Files
from latentbit.data.sampled import Sampled

MEAN: tuple[float, ...] = (0.485, 0.456, 0.406)
STD: tuple[float, ...] = (0.229, 0.224, 0.225)
IMAGE_SIZE = 224
CENTRE = (-1, -1, 0)

Key = tuple[int, int, int, int]
"""Image, then the draws for top, left, flip; CENTRE cuts the middle."""


def decode(path: str, resize: int, size: int, draws: tuple[int, int, int]) -> np.ndarray:
    """One image as (3, size, size) bytes."""
    planes = images.pixels(images.scale_short_side(images.read(path), resize))
    if draws == CENTRE:
        planes = images.cut_centre(planes, size, size)
    else:
        top, left = (
            draw % (length - size + 1) for draw, length in zip(draws, planes.shape[1:], strict=False)
        )
        planes = planes[:, top : top + size, left : left + size]
    return np.ascontiguousarray(planes[:, :, ::-1] if draws[2] % 2 else planes)


class _Decoder(torch_data.Dataset[tuple[np.ndarray | str, int]]):
    def __init__(self, split: Files, resize: int, size: int):
        self.split, self.resize, self.size = split, resize, size

    def __getitem__(self, key: Key) -> tuple[np.ndarray | str, int]:
        path = self.split.paths[key[0]]
        try:
            image: np.ndarray | str = decode(path, self.resize, self.size, key[1:])
        except images.ImageError as error:  # as a value it leaves the worker in one line, without a traceback
            image = str(error)
        except Exception as error:  # an absurd shape, which does not fit memory when it is scaled
            image = f"{path} cannot be scaled ({error}): replace or remove it"
        return image, int(self.split.labels[key[0]])


def _collate(items: list[tuple[np.ndarray | str, int]]) -> tuple[Tensor, Tensor] | str:
    if broken := _broken(items):
        return broken[0]
    decoded, labels = zip(*items, strict=True)
    return torch.from_numpy(np.stack(decoded)), torch.tensor(labels)


def _broken(items: list[tuple[np.ndarray | str, int]]) -> list[str]:
    return [image for image, _ in items if isinstance(image, str)]


def unreadable(root: Path, workers: int) -> Iterator[list[str]]:
    """Decode every image of a folder; for each 64 of them, a line for each that cannot be decoded."""
    for split in folders.find(root)[:2]:
        batches = np.array_split(np.arange(len(split)), max(1, len(split) // 64))
        keys = ([(i, *CENTRE) for i in batch.tolist()] for batch in batches if len(batch))
        yield from torch_data.DataLoader(
            _Decoder(split, 32, 32), batch_sampler=keys, num_workers=workers, collate_fn=_broken
        )


class ImageFolder(Sampled[Files]):
    """See latentbit.data.dataset.Dataset."""

    def __init__(
        self, root: Path, image_size: int, resize: int, flip: bool, workers: int, device: torch.device
    ) -> None:
        train, test, classes = folders.find(root)
        super().__init__("image_folder", train, test, classes, MEAN, STD, device)
        self.image_size, self.resize, self.flip = image_size or IMAGE_SIZE, resize, flip
        self.workers = workers
        if self.resize < self.image_size:
            raise DataError(f"data.resize = {resize} is smaller than data.image_size = {self.image_size}")

    def checksum(self) -> str:
        """sha256 of the names and classes of all files. Their contents are not read: a million images take hours."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for path, label in zip(split.paths, split.labels, strict=True):
                total.update(f"{label} {Path(path).name}\n".encode())
        return f"sha256:{total.hexdigest()}"

    def _batches(
        self, split: Files, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        loader = torch_data.DataLoader(
            _Decoder(split, self.resize, self.image_size),
            batch_sampler=([self._key(i, draws) for i in index.tolist()] for index in indices),
            num_workers=self.workers,
            collate_fn=_collate,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # the loader seeds its workers: not from the global state
        )
        for found in loader:
            if isinstance(found, str):
                raise DataError(found)
            bytes_, labels = (tensor.to(self.device, non_blocking=True) for tensor in found)
            yield self._normalised(bytes_), labels

    def _key(self, image: int, draws: np.ndarray | None) -> Key:
        if draws is None:
            return (image, *CENTRE)
        top, left, flip = draws[image].tolist()
        return image, top, left, flip if self.flip else 0
