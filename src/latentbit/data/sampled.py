"""A data set as positions: which images make a batch is decided here, how they become tensors by who holds them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from latentbit.data import augment, sampling
from latentbit.data.dataset import Batch


class Labelled(Protocol):
    """Images with their classes."""

    @property
    def labels(self) -> Any: ...

    def __len__(self) -> int: ...


Split = TypeVar("Split", bound=Labelled)
"""Images of training or of the test, as the subclass holds them."""


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

    def hold_out(self, share: float, seed: int) -> None:
        """Keep this share of the training images of every class apart; the others are what is trained on."""
        self._held_out = sampling.held_out(np.asarray(torch.as_tensor(self.train.labels).cpu()), share, seed)

    @abstractmethod
    def _batches(
        self, split: Split, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        """The images at `indices`, a batch for each; cropped by their rows of `draws`, or as the test sees them."""

    def _normalised(self, images: Tensor) -> Tensor:
        return augment.normalise(images, self._mean, self._std)

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
        indices = sampling.train_indices(self._trained_on(plan.order), batch_size, rank, world, start_step)
        return self._batches(self.train, indices, plan.draws)

    def test_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        indices = sampling.eval_indices(np.arange(len(self.test)), batch_size, rank, world)
        return self._batches(self.test, indices, None)

    def val_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        indices = sampling.eval_indices(np.flatnonzero(self._held_out), batch_size, rank, world)
        return self._batches(self.train, indices, None)

    def train_eval_batches(
        self, batch_size: int, limit: int | None = None, rank: int = 0, world: int = 1
    ) -> Iterator[Batch]:
        order = self._trained_on(sampling.fixed_order(len(self.train)))
        # The limit is on the indices: workers decode ahead, and would decode what nobody takes.
        indices = islice(sampling.eval_indices(order, batch_size, rank, world), limit)
        return self._batches(self.train, indices, None)
