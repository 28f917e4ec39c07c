"""image_folder: decoding against Pillow by hand, order and crops against the plan, errors by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from latentbit.data.dataset import DataError
from latentbit.data.image_folder import CENTRE, MEAN, STD, ImageFolder, decode, unreadable
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


def folder(root: Path, workers: int = 0) -> ImageFolder:
    return ImageFolder(root, 8, 12, True, workers, CPU)


def test_decode(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 24, 3), dtype=np.uint8)
    path = str(tmp_path / "x.png")
    Image.fromarray(pixels).save(path)
    scaled = np.asarray(Image.fromarray(pixels).resize((12, 15), Image.Resampling.BILINEAR)).transpose(
        2, 0, 1
    )
    assert np.array_equal(decode(path, 12, 8, CENTRE), scaled[:, 3:11, 2:10])
    assert np.array_equal(decode(path, 12, 8, (8 * 5 + 7, 5 * 7 + 4, 3)), scaled[:, 7:15, 4:12][:, :, ::-1])
    assert decode(path, 12, 8, (10**18, 10**18 + 1, 0)).shape == (3, 8, 8)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / ("x.tif" if mode == "CMYK" else "x.png"))
    Image.new("RGB", (9, 9), (200, 200, 200)).convert(mode).save(path)
    assert decode(path, 8, 8, CENTRE).shape == (3, 8, 8)


def test_train_batches_follow_the_plan(root: Path) -> None:
    data = folder(root)
    assert (data.num_classes, data.image_size, data.steps_per_epoch(4)) == (2, 8, 4)
    plan = Epoch.of(5, 2, 18)
    mean, std = np.array(MEAN).reshape(1, 3, 1, 1), np.array(STD).reshape(1, 3, 1, 1)
    found = list(data.train_batches(2, batch_size=4, seed=5))
    assert len(found) == 4
    for step, (images, labels) in enumerate(found):
        index = plan.order[4 * step : 4 * step + 4]
        raw = np.stack([decode(data.train.paths[i], 12, 8, tuple(plan.draws[i])) for i in index])
        np.testing.assert_allclose(images.numpy(), (raw / 255 - mean) / std, rtol=1e-5, atol=1e-5)
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
    assert [len(y) for _, y in data.train_eval_batches(4, limit=2)] == [4, 4]
    mixed = torch.cat([y for _, y in data.train_eval_batches(4)]).tolist()
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
        ImageFolder(root, 0, 100, True, 0, CPU)


def test_unreadable_lists_every_broken_image(root: Path) -> None:
    assert [line for lines in unreadable(root, 0) for line in lines] == []
    for name in ("train/a/2.png", "val/b/0.png"):
        (root / name).write_bytes(b"not an image")
    found = [line for lines in unreadable(root, 1) for line in lines]
    assert len(found) == 2 and "train/a/2.png" in found[0] and "val/b/0.png" in found[1]
