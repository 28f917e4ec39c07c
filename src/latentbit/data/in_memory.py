"""A small data set as one tensor of bytes on the device: a batch is an index, a crop and a scale."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from latentbit.data import augment, sampling
from latentbit.data.dataset import Batch


@dataclass(frozen=True)
class Split:
    """Images (N, C, H, W) uint8 and labels (N,) int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def of(images: np.ndarray, labels: np.ndarray, size: int, device: torch.device) -> "Split":
        """Arrays of bytes as tensors on the device, scaled to `size` once if that is not their own."""
        tensor = torch.from_numpy(images)
        if size != tensor.shape[-1]:
            scaled = F.interpolate(tensor.float(), (size, size), mode="bilinear", antialias=True)
            tensor = scaled.round().clamp(0, 255).to(torch.uint8)
        return Split(tensor.to(device), torch.from_numpy(labels.astype(np.int64)).to(device))


class InMemory:
    """See latentbit.data.dataset.Dataset."""

    def __init__(
        self,
        name: str,
        train: Split,
        test: Split,
        classes: tuple[str, ...],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        pad: int,
        flip: bool,
    ):
        self.name, self.train, self.test, self.classes = name, train, test, classes
        self.mean, self.std, self.pad, self.flip = mean, std, pad, flip
        self.in_channels, self.image_size = train.images.shape[1], train.images.shape[-1]
        self.device = train.images.device
        self._mean = torch.tensor(mean, device=self.device).view(1, -1, 1, 1)
        self._std = torch.tensor(std, device=self.device).view(1, -1, 1, 1)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def checksum(self) -> str:
        """sha256 of the images and labels of both splits, as decoded and scaled."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for tensor in (split.images, split.labels):
                total.update(str(tuple(tensor.shape)).encode())
                total.update(tensor.cpu().numpy().data)
        return f"sha256:{total.hexdigest()}"

    def steps_per_epoch(self, batch_size: int) -> int:
        return sampling.steps(len(self.train), batch_size)

    def train_batches(
        self, epoch: int, *, batch_size: int, seed: int, rank: int = 0, world: int = 1, start_step: int = 0
    ) -> Iterator[Batch]:
        plan = sampling.Epoch.of(seed, epoch, len(self.train))
        for index in sampling.train_indices(plan.order, batch_size, rank, world, start_step):
            draws = torch.from_numpy(plan.draws[index]).to(self.device)
            chosen = torch.from_numpy(index).to(self.device)
            images = augment.crop(self.train.images.index_select(0, chosen), draws, self.pad, self.flip)
            yield augment.normalise(images, self._mean, self._std), self.train.labels[chosen]

    def test_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        return self._plain(self.test, np.arange(len(self.test)), batch_size, rank, world)

    def train_eval_batches(
        self, batch_size: int, limit: int | None = None, rank: int = 0, world: int = 1
    ) -> Iterator[Batch]:
        order = sampling.fixed_order(len(self.train))
        return islice(self._plain(self.train, order, batch_size, rank, world), limit)

    def _plain(
        self, split: Split, order: np.ndarray, batch_size: int, rank: int, world: int
    ) -> Iterator[Batch]:
        for index in sampling.eval_indices(order, batch_size, rank, world):
            chosen = torch.from_numpy(index).to(self.device)
            images = split.images.index_select(0, chosen)  # an order faster than split.images[chosen]
            yield augment.normalise(images, self._mean, self._std), split.labels[chosen]
