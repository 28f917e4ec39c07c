"""Images decoded from files by worker processes: short side to `resize`, a square cut out, mirrored or not.

The cut of a training image follows from (seed, epoch, image) as in sampling.py; tests cut the centre.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as torch_data

from latentbit.data import augment, folders, sampling
from latentbit.data.dataset import Batch, DataError
from latentbit.data.folders import Split

MEAN: tuple[float, ...] = (0.485, 0.456, 0.406)
STD: tuple[float, ...] = (0.229, 0.224, 0.225)
IMAGE_SIZE = 224
CENTRE = (-1, -1, 0)

Key = tuple[int, int, int, int]
"""Image, then the draws for top, left, flip; CENTRE cuts the middle."""


def decode(path: str, resize: int, size: int, draws: tuple[int, int, int]) -> np.ndarray:
    """One image as (3, size, size) bytes."""
    from PIL import Image

    with Image.open(path) as file:
        image = file.convert("RGB")
    scale = resize / min(image.size)
    width, height = (max(resize, round(side * scale)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    if draws == CENTRE:
        top, left = (height - size) // 2, (width - size) // 2
    else:
        top, left = draws[0] % (height - size + 1), draws[1] % (width - size + 1)
    pixels = np.asarray(image)[top : top + size, left : left + size].transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[:, :, ::-1] if draws[2] % 2 else pixels)


class _Decoder(torch_data.Dataset[tuple[np.ndarray | str, int]]):
    def __init__(self, split: Split, resize: int, size: int):
        self.split, self.resize, self.size = split, resize, size

    def __getitem__(self, key: Key) -> tuple[np.ndarray | str, int]:
        path = self.split.paths[key[0]]
        try:
            image: np.ndarray | str = decode(path, self.resize, self.size, key[1:])
        except Exception as error:  # Pillow raises many kinds; as a value it reaches the user in one line
            image = f"{path} can not be decoded ({error}): replace or remove it"
        return image, int(self.split.labels[key[0]])


def _collate(items: list[tuple[np.ndarray | str, int]]) -> tuple[Tensor, Tensor] | str:
    images, labels = zip(*items, strict=True)
    broken = [image for image in images if isinstance(image, str)]
    if broken:
        return broken[0]
    return torch.from_numpy(np.stack(images)), torch.tensor(labels)


def _broken(items: list[tuple[np.ndarray | str, int]]) -> list[str]:
    return [image for image, _ in items if isinstance(image, str)]


def unreadable(root: Path, workers: int) -> Iterator[list[str]]:
    """Decode every image of a folder; for each 64 of them, a line for each that can not be decoded."""
    for split in folders.find(root)[:2]:
        batches = np.array_split(np.arange(len(split)), max(1, len(split) // 64))
        keys = ([(i, *CENTRE) for i in batch.tolist()] for batch in batches if len(batch))
        yield from torch_data.DataLoader(
            _Decoder(split, 32, 32), batch_sampler=keys, num_workers=workers, collate_fn=_broken
        )


class ImageFolder:
    """See latentbit.data.dataset.Dataset."""

    name, in_channels, mean, std = "image_folder", 3, MEAN, STD

    def __init__(
        self, root: Path, image_size: int, resize: int, flip: bool, workers: int, device: torch.device
    ):
        self.train, self.test, self.classes = folders.find(root)
        self.image_size, self.resize, self.flip = image_size or IMAGE_SIZE, resize, flip
        self.workers, self.device = workers, device
        if self.resize < self.image_size:
            raise DataError(f"data.resize = {resize} is smaller than data.image_size = {self.image_size}")
        self._mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self._std = torch.tensor(STD, device=device).view(1, 3, 1, 1)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def checksum(self) -> str:
        """sha256 of the names and classes of all files. Their contents are not read: a million images take hours."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for path, label in zip(split.paths, split.labels, strict=True):
                total.update(f"{label} {Path(path).name}\n".encode())
        return f"sha256:{total.hexdigest()}"

    def steps_per_epoch(self, batch_size: int) -> int:
        return sampling.steps(len(self.train), batch_size)

    def train_batches(
        self, epoch: int, *, batch_size: int, seed: int, rank: int = 0, world: int = 1, start_step: int = 0
    ) -> Iterator[Batch]:
        plan = sampling.Epoch.of(seed, epoch, len(self.train))
        if not self.flip:
            plan.draws[:, 2] = 0
        indices = sampling.train_indices(plan.order, batch_size, rank, world, start_step)
        keys = ([(i, *plan.draws[i].tolist()) for i in index.tolist()] for index in indices)
        return self._decoded(self.train, keys)

    def test_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        return self._plain(self.test, np.arange(len(self.test)), batch_size, rank, world, None)

    def train_eval_batches(
        self, batch_size: int, limit: int | None = None, rank: int = 0, world: int = 1
    ) -> Iterator[Batch]:
        order = sampling.fixed_order(len(self.train))
        return self._plain(self.train, order, batch_size, rank, world, limit)

    def _plain(
        self, split: Split, order: np.ndarray, batch_size: int, rank: int, world: int, limit: int | None
    ) -> Iterator[Batch]:
        # The limit goes on the indices: workers decode ahead, and would decode what nobody takes.
        indices = islice(sampling.eval_indices(order, batch_size, rank, world), limit)
        return self._decoded(split, ([(i, *CENTRE) for i in index.tolist()] for index in indices))

    def _decoded(self, split: Split, keys: Iterable[list[Key]]) -> Iterator[Batch]:
        loader = torch_data.DataLoader(
            _Decoder(split, self.resize, self.image_size),
            batch_sampler=keys,
            num_workers=self.workers,
            collate_fn=_collate,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # the loader seeds its workers: not from the global state
        )
        for found in loader:
            if isinstance(found, str):
                raise DataError(found)
            images, labels = (tensor.to(self.device, non_blocking=True) for tensor in found)
            yield augment.normalise(images, self._mean, self._std), labels
