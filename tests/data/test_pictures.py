"""pictures: what happens to images that cannot be read; the rest is in test_image_folder.py and test_shards.py."""

import warnings
from pathlib import Path

import pytest
import torch
from data import jpeg_files

from latentbit import data, recipes
from latentbit.data.augment import Colour
from latentbit.data.dataset import DataError
from latentbit.data.in_memory import InMemory, Pixels
from latentbit.data.pictures import Pictures
from latentbit.errors import LatentbitWarning

CPU = torch.device("cpu")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return jpeg_files.folder(tmp_path, {"train": 10, "val": 4})


def opened(root: Path, **more: object) -> Pictures:
    chosen = {
        "dataset": "image_folder",
        "root": str(root),
        "image_size": 8,
        "resize": 12,
        "workers": 0,
        **more,
    }
    found = data.open(recipes.Data(**chosen))  # type: ignore[arg-type]
    assert isinstance(found, Pictures)
    return found


def test_a_broken_image_ends_it_unless_some_are_allowed(root: Path) -> None:
    (root / "train/a/3.jpg").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"train/a/3.jpg cannot be decoded .* or set broken_limit=N"):
        list(opened(root).train_batches(0, batch_size=4, seed=0))


def test_the_next_image_takes_its_place_for_any_number_of_processes(root: Path) -> None:
    whole = dict(enumerate(torch.cat([x for x, _ in opened(root).train_batches(0, batch_size=20, seed=0)])))
    (root / "train/a/9.jpg").write_bytes(b"nonsense")  # the last of its class: the next one is of class b
    with pytest.warns(LatentbitWarning, match="1 of at most 2 broken images: .*a/9.jpg") as caught:
        ((images, labels),) = opened(root, broken_limit=2).train_batches(0, batch_size=20, seed=0)
    assert len([one for one in caught if one.category is LatentbitWarning]) == 1
    changed = [i for i in whole if not torch.equal(whole[i], images[i])]
    assert len(changed) == 1 and labels.sum() == 11
    with pytest.warns(LatentbitWarning):
        parts = [
            next(opened(root, broken_limit=2).train_batches(0, batch_size=20, seed=0, rank=r, world=2))
            for r in (0, 1)
        ]
    assert torch.equal(torch.cat([x for x, _ in parts]), images)


def test_an_evaluation_goes_without_it(root: Path) -> None:
    (root / "val/b/0.jpg").unlink()
    (root / "val/b/0.jpg").mkdir()  # found as a name, and cannot be read
    (root / "val/b/0.jpg/1.jpg").write_bytes(b"")
    dataset = opened(root, broken_limit=1)
    with pytest.warns(LatentbitWarning, match="1.jpg"):
        labels = torch.cat([labels for _, labels in dataset.test_batches(3)])
    assert labels.tolist() == [0] * 4 + [1] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(len(y) for _, y in dataset.test_batches(3)) == 7, "an image is named once"


def test_one_more_than_allowed_ends_it(root: Path) -> None:
    for i in range(3):
        (root / f"train/b/{i}.jpg").write_bytes(b"nonsense")
    dataset = opened(root, broken_limit=2)
    with (
        pytest.warns(LatentbitWarning),
        pytest.raises(DataError, match="more than broken_limit = 2 images are broken"),
    ):
        list(dataset.train_batches(0, batch_size=20, seed=0))


def test_colours_change_in_training_alone(root: Path) -> None:
    plain, bright = opened(root), opened(root, brightness=0.5)
    assert torch.equal(next(plain.test_batches(4))[0], next(bright.test_batches(4))[0])
    assert not torch.equal(next(plain.statistics_batches(4))[0], next(bright.statistics_batches(4))[0])
    (a, _), (b, _) = (next(d.train_batches(0, batch_size=4, seed=0)) for d in (plain, bright))
    assert not torch.equal(a, b)


def test_crops_that_a_data_set_does_not_have_are_refused() -> None:
    with pytest.raises(
        DataError, match="crop = 'random_resized' is for dataset = 'image_folder' or 'shards'"
    ):
        data.open(recipes.Data(dataset="digits", crop="random_resized"))
    pixels = Pixels(torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    grey = InMemory("grey", pixels, pixels, ("a",), (0.5,), (0.5,), 0, False)
    with pytest.raises(DataError, match="saturation, hue and lighting need images in colour"):
        grey.recolour(Colour(lighting=0.1))
