"""image_folder: decoding against Pillow by hand, order and crops against the plan, errors by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from latentbit import images, recipes
from latentbit.data.dataset import DataError
from latentbit.data.folders import find
from latentbit.data.image_folder import ImageFolder, unreadable
from latentbit.data.pictures import MEAN, STD
from latentbit.data.sampling import Epoch

CPU = torch.device("cpu")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for split, count in (("train", 9), ("val", 5)):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(count):
                shape = (rng.integers(12, 20), rng.integers(12, 20), 3)
                image = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
                image.save(tmp_path / split / name / f"{i}.png")
    return tmp_path


def folder(root: Path, workers: int = 0, **more: object) -> ImageFolder:
    chosen = {
        "dataset": "image_folder",
        "image_size": 8,
        "resize": 12,
        "flip": True,
        "workers": workers,
        **more,
    }
    return ImageFolder(root, recipes.Data(**chosen), CPU)  # type: ignore[arg-type]


def by_hand(path: str, top: int, left: int, mirror: int) -> np.ndarray:
    """Short side to 12, a square of 8 cut out, mirrored or not."""
    with Image.open(path) as image:
        scaled = np.asarray(images.scale_short_side(image, 12))
    height, width = scaled.shape[:2]
    top, left = top % (height - 7), left % (width - 7)
    cut = scaled[top : top + 8, left : left + 8].transpose(2, 0, 1)
    return cut[:, :, ::-1] if mirror % 2 else cut


def test_train_batches_follow_the_plan(root: Path) -> None:
    data = folder(root, exact=True)
    assert (data.num_classes, data.image_size, data.steps_per_epoch(4)) == (2, 8, 4)
    plan = Epoch.of(5, 2, 18)
    mean, std = np.array(MEAN).reshape(1, 3, 1, 1), np.array(STD).reshape(1, 3, 1, 1)
    found = list(data.train_batches(2, batch_size=4, seed=5))
    assert len(found) == 4
    for step, (batch, labels) in enumerate(found):
        index = plan.order[4 * step : 4 * step + 4]
        raw = np.stack([by_hand(data.train.paths[i], *plan.draws[i]) for i in index])
        np.testing.assert_allclose(batch.numpy(), (raw / 255 - mean) / std, rtol=1e-5, atol=1e-5)
        assert labels.tolist() == data.train.labels[index].tolist()


def test_workers_ranks_and_resume_change_nothing(root: Path) -> None:
    whole = list(folder(root).train_batches(1, batch_size=6, seed=3))
    ways = [
        list(folder(root, workers=2).train_batches(1, batch_size=6, seed=3)),
        [
            tuple(map(torch.cat, zip(*parts, strict=True)))
            for parts in zip(
                *(folder(root).train_batches(1, batch_size=6, seed=3, rank=r, world=2) for r in (0, 1)),
                strict=True,
            )
        ],
        whole[:1] + list(folder(root).train_batches(1, batch_size=6, seed=3, start_step=1)),
    ]
    for way in ways:
        assert all(
            torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(whole, way, strict=True)
        )


def test_global_random_state_is_left_alone(root: Path) -> None:
    before = torch.get_rng_state()
    next(folder(root, workers=1).train_batches(0, batch_size=4, seed=0))
    assert torch.equal(before, torch.get_rng_state())


def test_evaluation_over_ranks(root: Path) -> None:
    data = folder(root)
    whole = torch.cat([images for images, _ in data.test_batches(4)])
    assert len(whole) == 10
    labels = torch.cat([labels for rank in range(3) for _, labels in data.test_batches(4, rank, 3)])
    assert sorted(labels.tolist()) == [0] * 5 + [1] * 5
    assert [len(y) for _, y in data.statistics_batches(4, limit=2)] == [4, 4]
    mixed = torch.cat([y for _, y in data.statistics_batches(4)]).tolist()
    assert len(mixed) == 18 and mixed != sorted(mixed)


@pytest.mark.parametrize("workers", [0, 1])
def test_unreadable_image_is_named(root: Path, workers: int) -> None:
    broken = root / "val" / "b" / "3.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(DataError, match=f"{broken} cannot be decoded") as caught:
        list(folder(root, workers).test_batches(4))
    assert "\n" not in str(caught.value)


def test_resize_below_image_size(root: Path) -> None:
    with pytest.raises(DataError, match="data.resize = 100 is smaller than data.image_size = 224"):
        folder(root, image_size=0, resize=100)


def test_unreadable_lists_every_broken_image(root: Path) -> None:
    assert [line for split in find(root)[:2] for _, lines in unreadable(split, 0) for line in lines] == []
    for name in ("train/a/2.png", "val/b/0.png"):
        (root / name).write_bytes(b"not an image")
    found = [line for split in find(root)[:2] for _, lines in unreadable(split, 1) for line in lines]
    assert len(found) == 2 and "train/a/2.png" in found[0] and "val/b/0.png" in found[1]
