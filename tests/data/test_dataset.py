"""dataset: `open` gives, for every name of a recipe, something of the promised shape."""

import inspect
from pathlib import Path

import pytest

from latentbit import data, recipes
from latentbit.data import Dataset
from latentbit.data.image_folder import ImageFolder
from latentbit.data.in_memory import InMemory
from latentbit.errors import LatentbitError


@pytest.mark.parametrize("kind", [InMemory, ImageFolder])
@pytest.mark.parametrize("method", ["steps_per_epoch", "train_batches", "test_batches", "train_eval_batches"])
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
