"""Data of the user's own: what it may be, that its batches are ours, and what is refused by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from latentbit import OwnData, data
from latentbit.data import DataError, own
from latentbit.recipes import Data

IMAGES = np.arange(40 * 64, dtype=np.uint64).reshape(40, 1, 8, 8).astype(np.uint8)
LABELS = np.arange(40) % 4


class Noisy(torch.utils.data.Dataset):
    """A random transform, as torchvision's are."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        shift = int(torch.randint(100, ())) + np.random.randint(100)  # noqa: NPY002
        return IMAGES[i] // 2 + np.uint8(shift // 2), int(LABELS[i])


def opened(made: OwnData, monkeypatch: pytest.MonkeyPatch, **keys: object) -> data.Dataset:
    monkeypatch.setattr(own, "find_import", lambda name: lambda: made)
    chosen = {"pad": 0, "workers": 0} | keys
    return data.open(Data(dataset="my_data.py:make", **chosen))  # type: ignore[arg-type]


def tensors(images: np.ndarray = IMAGES) -> TensorDataset:
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(LABELS))


def test_bytes_floats_and_pillow_give_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    as_pillow = [(Image.fromarray(image[0]), int(label)) for image, label in zip(IMAGES, LABELS, strict=True)]
    mean, std = [0.25], [0.5]
    kinds = [
        tensors(),
        tensors((IMAGES / 255).astype(np.float32)),
        as_pillow,
        DataLoader(tensors(), 7, shuffle=True),
    ]
    batches = []
    for kind in kinds:
        dataset = opened(OwnData(kind, kind, 4, mean, std), monkeypatch, pad=1, flip=True)
        batches.append(list(dataset.train_batches(3, batch_size=16, seed=5)))
        images, labels = next(iter(dataset.test_batches(40)))
        np.testing.assert_allclose(images, (IMAGES / 255 - 0.25) / 0.5, rtol=1e-5, atol=1e-6)
        assert labels.tolist() == LABELS.tolist()
        assert (dataset.name, dataset.classes, dataset.image_size) == ("my_data.py:make", tuple("0123"), 8)
    for other in batches[1:]:
        for (x, y), (same_x, same_y) in zip(batches[0], other, strict=True):
            torch.testing.assert_close(x, same_x, rtol=1e-5, atol=1e-5)
            assert torch.equal(y, same_y)


def test_mean_and_std_are_measured_where_they_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(OwnData(tensors(), tensors(), ["a", "b", "c", "d"]), monkeypatch)
    assert dataset.mean == pytest.approx([(IMAGES / 255).mean()], abs=1e-4)
    assert dataset.std == pytest.approx([(IMAGES / 255).std()], abs=1e-3)


def test_random_transforms_follow_from_seed_and_epoch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(OwnData(Noisy(), Noisy(), 4), monkeypatch)
    drawn = torch.rand(3)
    torch.manual_seed(0)
    first = [x for x, _ in dataset.train_batches(0, batch_size=8, seed=1)]
    assert torch.equal(torch.rand(3), drawn)  # the generators of the training are left alone
    rest = [x for x, _ in dataset.train_batches(0, batch_size=8, seed=1, start_step=2)]
    assert all(torch.equal(a, b) for a, b in zip(first[2:], rest, strict=True))
    assert not torch.equal(first[0], next(iter(dataset.train_batches(1, batch_size=8, seed=1)))[0])
    tests = [next(iter(dataset.test_batches(40)))[0] for _ in range(2)]
    assert torch.equal(*tests) and dataset.checksum() == dataset.checksum()


def test_workers_read_the_same_and_tell_a_fault_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = OwnData(Noisy(), Noisy(), 4)
    here, there = (
        list(opened(made, monkeypatch, workers=n, val=0.2).train_batches(0, batch_size=16, seed=0))
        for n in (0, 2)
    )
    assert len(here) == len(there) == 2  # 32 of 40: a fifth of every class is kept apart
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(here, there, strict=True))
    items = [(IMAGES[i], 0) for i in range(39)] + [(IMAGES[0], 9)]
    wrong = opened(OwnData(items[:39], items, 4), monkeypatch, workers=1)
    with pytest.raises(DataError) as caught:
        list(wrong.test_batches(40))
    assert str(caught.value) == (
        "my_data.py:make, test[39] has label 9, but 4 classes are numbered from 0 to 3"
    )


def refused(made: object, monkeypatch: pytest.MonkeyPatch, **keys: object) -> str:
    with pytest.raises(DataError) as caught:
        opened(made, monkeypatch, **keys)  # type: ignore[arg-type]
    return str(caught.value)


def test_what_cannot_be_trained_on_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(items: object, **keys: object) -> str:
        return refused(OwnData(items, items, 4), monkeypatch, **keys)

    assert "returned tuple: it must return latentbit.OwnData" in refused((1, 2), monkeypatch)
    normalised = [(torch.full((1, 8, 8), -1.5), 0)] * 20
    assert "train[0] has values from -1.5 to -1.5: give bytes, or floats from 0 to 1" in told(normalised)
    assert "an image of shape (1, 8, 6)" in told([(np.zeros((1, 8, 6), np.uint8), 0)])
    assert "is no image" in told([("cat.png", 0)])
    assert "of shape (1, 4, 4), others are of (1, 8, 8)" in told(
        [(IMAGES[0], 0), (np.zeros((4, 4), np.uint8), 0)]
    )
    assert "train has no images" in told([])
    assert "train[3] has label 3, but 3 classes" in refused(OwnData(tensors(), tensors(), 3), monkeypatch)
    assert "test images are (1, 4, 4), training images (1, 8, 8)" in refused(
        OwnData(tensors(), tensors(IMAGES[:, :, :4, :4]), 4), monkeypatch
    )
    weighted = DataLoader(tensors(), 4, sampler=WeightedRandomSampler([1.0] * 40, 40))
    assert "its loader has a WeightedRandomSampler" in told(weighted)
    assert "has no length" in told(iter([]))
    assert "image_size = 16: leave image_size out, or give the function" in told(tensors(), image_size=16)
    assert "mean has 3 values, the images 1 channels" in refused(
        OwnData(tensors(), tensors(), 4, [0.0] * 3, [1.0] * 3), monkeypatch
    )


def test_the_function_gets_what_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "lb_own_data.py").write_text(
        "import numpy as np, latentbit\n"
        "def make(root, image_size=4):\n"
        "    open(root)\n"
        "    items = [(np.full((image_size, image_size), i, np.uint8), i % 2) for i in range(9)]\n"
        "    return latentbit.OwnData(items, items, classes=2)\n"
    )
    name = f"{tmp_path}/lb_own_data.py:make"
    dataset = data.open(Data(dataset=name, root=str(tmp_path / "lb_own_data.py"), image_size=6))
    assert dataset.image_size == 6
    with pytest.raises(DataError, match="make cannot read its images: .*No such file"):
        data.open(Data(dataset=name, root=str(tmp_path / "gone")))
