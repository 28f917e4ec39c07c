"""A data set as positions: which images make a batch is decided here, how they become tensors by who holds them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from PIL.Image import Image, fromarray
from torch import Tensor

from latentbit.data import augment, sampling
from latentbit.data.dataset import Batch, DataError


class Labelled(Protocol):
    """Images with their classes."""

    @property
    def labels(self) -> Any: ...

    def __len__(self) -> int: ...


Split = TypeVar("Split", bound=Labelled)
"""Images of training or of the test, as the subclass holds them."""


def to_picture(image: Tensor) -> Image:
    """(C, H, W) bytes as an image of Pillow."""
    planes = image.numpy()
    return fromarray(planes[0] if len(planes) == 1 else planes.transpose(1, 2, 0))


class Sampled(ABC, Generic[Split]):
    """What the data sets have in common; see latentbit.data.dataset.Dataset."""

    def __init__(
        self,
        name: str,
        train: Split,
        test: Split,
        classes: tuple[str, ...],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: torch.device,
    ) -> None:
        self.name, self.train, self.test, self.classes = name, train, test, classes
        self.mean, self.std, self.device = mean, std, device
        self.in_channels = len(mean)
        self._mean = torch.tensor(mean, device=device).view(1, -1, 1, 1)
        self._std = torch.tensor(std, device=device).view(1, -1, 1, 1)
        self._held_out = np.zeros(len(train), bool)
        self.colour = augment.Colour()

    def hold_out(self, share: float, seed: int) -> None:
        """Keep this share of the training images of every class apart; the others are what is trained on."""
        self._held_out = sampling.held_out(np.asarray(torch.as_tensor(self.train.labels).cpu()), share, seed)

    def recolour(self, colour: augment.Colour) -> None:
        """Change the colours of training images so."""
        if colour.needs_colour and self.in_channels != 3:
            raise DataError(
                f"saturation, hue and lighting need images in colour, and those of {self.name} have "
                f"{self.in_channels} channel: set them to 0"
            )
        self.colour = colour

    @abstractmethod
    def _batches(
        self, split: Split, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        """The images at `indices`, a batch for each; cropped by their rows of `draws`, or as the test sees them."""

    def _finished(self, images: Tensor, draws: np.ndarray | None) -> Tensor:
        """Bytes of one batch as the network sees them; `draws` are the rows of its images, None for the test."""
        if draws is not None and self.colour:
            images = augment.recolour(images, draws[:, 2], self.colour)
        return augment.normalise(images, self._mean, self._std)

    def original(self, index: int) -> Image:
        """A training image as it is stored."""
        return to_picture(self.seen(np.array([index]))[0])

    def seen(self, index: np.ndarray, draws: np.ndarray | None = None) -> Tensor:
        """Training images as the network sees them, as bytes; by `draws` of all images, or as in a test."""
        images = torch.cat([images for images, _ in self._batches(self.train, iter([index]), draws)])
        return ((images * self._std + self._mean) * 255).round().clamp(0, 255).to(torch.uint8).cpu()

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def steps_per_epoch(self, batch_size: int) -> int:
        return sampling.steps(len(self.train) - self.n_val, batch_size)

    @property
    def n_val(self) -> int:
        return int(self._held_out.sum())

    def _trained_on(self, order: np.ndarray) -> np.ndarray:
        return order[~self._held_out[order]] if self.n_val else order

    def train_batches(
        self, epoch: int, *, batch_size: int, seed: int, rank: int = 0, world: int = 1, start_step: int = 0
    ) -> Iterator[Batch]:
        plan = sampling.Epoch.of(seed, epoch, len(self.train))
        order = self._order(plan, seed, epoch, batch_size)
        indices = sampling.train_indices(order, batch_size, rank, world, start_step)
        return self._batches(self.train, indices, plan.draws)

    def _order(self, plan: sampling.Epoch, seed: int, epoch: int, batch_size: int) -> np.ndarray:
        """The images of an epoch, batch after batch; shards have one that reads less at a time."""
        return self._trained_on(plan.order)

    def test_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        indices = sampling.eval_indices(np.arange(len(self.test)), batch_size, rank, world)
        return self._batches(self.test, indices, None)

    def val_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        indices = sampling.eval_indices(np.flatnonzero(self._held_out), batch_size, rank, world)
        return self._batches(self.train, indices, None)

    def statistics_batches(self, batch_size: int, limit: int | None = None) -> Iterator[Batch]:
        order = self._trained_on(sampling.fixed_order(len(self.train)))
        # The limit is on the indices: workers decode ahead, and would decode what nobody takes.
        indices = islice(sampling.eval_indices(order, batch_size, rank=0, world=1), limit)
        return self._batches(self.train, indices, sampling.Epoch.of(0, 0, len(self.train)).draws)
