"""dataset: `open` gives, for every name of a recipe, something of the promised shape."""

import inspect
from pathlib import Path

import pytest
import torch

from latentbit import data, recipes
from latentbit.data import Dataset
from latentbit.data.image_folder import ImageFolder
from latentbit.data.in_memory import InMemory
from latentbit.errors import LatentbitError


@pytest.mark.parametrize("kind", [InMemory, ImageFolder])
@pytest.mark.parametrize("method", ["steps_per_epoch", "train_batches", "test_batches", "statistics_batches"])
def test_every_kind_has_the_methods_of_the_protocol(kind: type, method: str) -> None:
    promised = inspect.signature(getattr(Dataset, method))
    assert inspect.signature(getattr(kind, method)) == promised


def test_open_digits() -> None:
    found = data.open(recipes.Data(dataset="digits", pad=1, flip=True))
    images, labels = next(found.train_batches(0, batch_size=32, seed=0))
    assert images.shape == (32, found.in_channels, found.image_size, found.image_size)
    assert labels.max() < found.num_classes == len(found.classes)


def test_what_is_missing_is_said_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path))
    for name in ("cifar10", "cifar100"):
        with pytest.raises(LatentbitError, match=f"run `latentbit data get {name}`"):
            data.open(recipes.Data(dataset=name))  # type: ignore[arg-type]
    with pytest.raises(LatentbitError, match="set root=DIR"):
        data.open(recipes.Data(dataset="image_folder"))


def test_validation_images_are_taken_from_training_and_seen_once() -> None:
    whole, part = (data.open(recipes.Data(dataset="digits", val=val, pad=0)) for val in (0.0, 0.1))
    assert (whole.n_val, part.n_val) == (0, 143) and list(whole.val_batches(64)) == []
    assert part.steps_per_epoch(64) == (1437 - 143) // 64
    kept = torch.cat([images for images, _ in part.val_batches(64)])
    rest = torch.cat([images for images, _ in part.statistics_batches(64)])
    every = torch.cat([images for images, _ in whole.statistics_batches(64)])
    assert len(kept) == 143 and len(rest) == 1437 - 143
    rows = lambda images: sorted(map(bytes, images.numpy().reshape(len(images), -1)))  # noqa: E731
    assert rows(torch.cat([kept, rest])) == rows(every)
    labels = torch.cat([labels for _, labels in part.val_batches(64)])
    assert labels.bincount().min() >= 13 and labels.bincount().max() <= 15
    test = [torch.cat([images for images, _ in one.test_batches(64)]) for one in (whole, part)]
    assert torch.equal(*test)
    # A training batch has none of them. Crops differ, labels of the drawn images do not: count them by position.
    assert sum(len(y) for _, y in part.train_batches(0, batch_size=1, seed=0)) == 1437 - 143
