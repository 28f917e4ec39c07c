"""A small data set as one tensor of bytes on the device: a batch is an index, a crop and a scale."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from latentbit.data import augment
from latentbit.data.dataset import Batch
from latentbit.data.sampled import Sampled


@dataclass(frozen=True)
class Pixels:
    """Images (N, C, H, W) uint8 and labels (N,) int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def of(images: np.ndarray, labels: np.ndarray, size: int, device: torch.device) -> "Pixels":
        """Arrays of bytes as tensors on the device, scaled to `size` once if that is not their own."""
        tensor = torch.from_numpy(images)
        if size != tensor.shape[-1]:
            scaled = F.interpolate(tensor.float(), (size, size), mode="bilinear", antialias=True)
            tensor = scaled.round().clamp(0, 255).to(torch.uint8)
        return Pixels(tensor.to(device), torch.from_numpy(labels.astype(np.int64)).to(device))


class InMemory(Sampled[Pixels]):
    """Digits and CIFAR; see latentbit.data.dataset.Dataset."""

    def __init__(
        self,
        name: str,
        train: Pixels,
        test: Pixels,
        classes: tuple[str, ...],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        pad: int,
        flip: bool,
    ) -> None:
        super().__init__(name, train, test, classes, mean, std, train.images.device)
        self.pad, self.flip = pad, flip
        self.image_size = train.images.shape[-1]

    def checksum(self) -> str:
        """sha256 of the images and labels of both splits, as decoded and scaled."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for tensor in (split.images, split.labels):
                total.update(str(tuple(tensor.shape)).encode())
                total.update(tensor.cpu().numpy().data)
        return f"sha256:{total.hexdigest()}"

    def _batches(
        self, split: Pixels, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        for index in indices:
            chosen = torch.from_numpy(index).to(self.device)
            images = split.images.index_select(0, chosen)  # an order faster than split.images[chosen]
            mine = None if draws is None else draws[index]
            if mine is not None:
                images = augment.crop(images, torch.from_numpy(mine).to(self.device), self.pad, self.flip)
            yield self._finished(images, mine), split.labels[chosen]
