"""Which positions make which batch, seen by a data set that returns the positions themselves."""

from collections.abc import Iterator

import numpy as np
import torch

from latentbit.data import sampling
from latentbit.data.dataset import Batch
from latentbit.data.sampled import Sampled


class Positions(Sampled[range]):
    """Images are 1 x 1 x 1 and hold their position; labels say whether they were cropped."""

    image_size = 1

    def __init__(self) -> None:
        super().__init__("x", range(20), range(7), ("a", "b"), (0.0,), (1.0,), torch.device("cpu"))

    def _batches(
        self, split: range, indices: Iterator[np.ndarray], draws: np.ndarray | None
    ) -> Iterator[Batch]:
        for index in indices:
            yield torch.tensor(index).view(-1, 1, 1, 1), torch.full((len(index),), int(draws is not None))


def _positions(batches: Iterator[Batch]) -> list[list[int]]:
    return [images.flatten().tolist() for images, _ in batches]


def test_training_follows_the_plan_of_its_epoch_and_is_cropped() -> None:
    order = sampling.Epoch.of(3, 1, 20).order.tolist()
    batches = list(Positions().train_batches(1, batch_size=6, seed=3))
    assert _positions(iter(batches)) == [order[0:6], order[6:12], order[12:18]]
    assert all(labels.all() for _, labels in batches)


def test_the_test_set_is_in_order_and_plain() -> None:
    batches = list(Positions().test_batches(3))
    assert _positions(iter(batches)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert not any(labels.any() for _, labels in batches)


def test_a_limit_is_put_on_the_indices() -> None:
    order = sampling.fixed_order(20).tolist()
    assert _positions(Positions().statistics_batches(4, limit=2)) == [order[0:4], order[4:8]]


def test_statistics_are_collected_on_images_cropped_as_in_training() -> None:
    """Plain ones cost W-dagger up to two points: the weights fit statistics of crops with black borders."""
    assert all(labels.all() for _, labels in Positions().statistics_batches(4))


def test_facts_follow_from_what_was_given() -> None:
    data = Positions()
    assert (data.num_classes, data.in_channels, data.steps_per_epoch(6)) == (2, 1, 3)
