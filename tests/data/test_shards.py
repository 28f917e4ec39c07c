"""shards: the same batches for any number of processes and after a resume, each test image once, damage by name."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from data import jpeg_files

from latentbit import data, recipes
from latentbit.data import sampling, shard_index, shard_writing, shards
from latentbit.data.dataset import DataError
from latentbit.data.shards import ShardedImages, Shards
from latentbit.errors import LatentbitWarning


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = jpeg_files.folder(tmp_path_factory.mktemp("images"), {"train": 25, "val": 5})
    dest = tmp_path_factory.mktemp("shards")
    shard_writing.write(source, dest, 9_000)
    return dest


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to damage, and a cache of its own."""
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(made, tmp_path / "shards")


def opened(root: Path, **more: object) -> ShardedImages:
    chosen = {"dataset": "shards", "root": str(root), "image_size": 8, "resize": 12, "workers": 0, **more}
    found = data.open(recipes.Data(**chosen))  # type: ignore[arg-type]
    assert isinstance(found, ShardedImages)
    return found


def test_processes_workers_and_resume_change_nothing(made: Path) -> None:
    options = {"crop": "random_resized", "flip": True, "lighting": 0.1}
    dataset = opened(made, **options)
    whole = list(dataset.train_batches(1, batch_size=6, seed=3))
    assert len(whole) == 8
    ways = [list(opened(made, workers=2, **options).train_batches(1, batch_size=6, seed=3, start_step=3))]
    for world in (2, 3):
        parts = [
            dataset.train_batches(1, batch_size=6, seed=3, rank=rank, world=world, start_step=3)
            for rank in range(world)
        ]
        ways.append([tuple(map(torch.cat, zip(*step, strict=True))) for step in zip(*parts, strict=True)])
    for way in ways:
        for (images, labels), (x, y) in zip(whole[3:], way, strict=True):
            assert torch.equal(images, x) and torch.equal(labels, y)
    other = next(dataset.train_batches(2, batch_size=6, seed=3))
    assert not torch.equal(other[0], whole[0][0])


def test_every_test_image_once_over_processes(made: Path) -> None:
    dataset = opened(made)
    alone = torch.cat([images for images, _ in dataset.test_batches(4)])
    assert len(alone) == 10
    parts = torch.cat([images for rank in range(3) for images, _ in dataset.test_batches(4, rank, 3)])
    key = [tuple(image.flatten().tolist()) for image in alone]
    assert sorted(key) == sorted(tuple(image.flatten().tolist()) for image in parts) and len(set(key)) == 10


def test_images_kept_apart_are_not_trained_on(made: Path) -> None:
    dataset = opened(made, val=0.2)
    order = dataset._order(sampling.Epoch.of(0, 0, 50), 0, 0, 5)
    assert len(set(order.tolist())) == 40 and not dataset._held_out[order].any()
    assert sum(len(y) for _, y in dataset.val_batches(4)) == 10


def test_neighbours_make_pieces_and_a_process_reads_a_share_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "PIECES", 100)
    counts = [3000, 1000, 4000]
    made = [
        shard_index.Index(0, "", np.arange(n) * 10_000, np.full(n, 9_000), np.zeros(n), np.zeros(n))
        for n in counts
    ]
    split = Shards([Path(str(i)) for i in range(3)], made)
    sizes = np.bincount(split.pieces)
    assert sizes.max() <= 80 and (np.diff(split.pieces) >= 0).all() and len(sizes) < 140
    assert all(len({split.shard[i] for i in np.flatnonzero(split.pieces == p)}) == 1 for p in (0, 37, 38, 60))
    order = sampling.order_in_pieces(0, 0, split.pieces, 64).reshape(-1, 64)
    assert len(set(order.flatten().tolist())) == 125 * 64
    mine = split.pieces[order[:, sampling.rows(64, 0, 4)]]
    assert len(np.unique(mine)) < 0.45 * len(sizes), "a quarter, and windows that it has a part of"


def test_a_lost_shard_is_named(root: Path) -> None:
    (root / "train-000001.tar").unlink()
    with pytest.raises(DataError, match=r"train-000001.tar cannot be opened, No such file .* \(\d+ images\)"):
        opened(root)
    (root / "train-000001.index.json").unlink()
    with pytest.raises(DataError, match="is not complete: 1 of .* missing, train-000001.tar for instance"):
        opened(root)


def test_a_short_shard_is_gone_without_where_that_is_allowed(root: Path) -> None:
    tar = root / "val-000000.tar"
    n_images = len(shard_index.of(tar))
    tar.write_bytes(tar.read_bytes()[:600])
    with pytest.raises(DataError, match="val-000000.tar has 600 bytes instead of"):
        opened(root, broken_limit=n_images - 1)
    dataset = opened(root, broken_limit=n_images)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert sum(len(y) for _, y in dataset.test_batches(4)) == 10 - n_images
    told = [str(one.message) for one in caught if one.category is LatentbitWarning]
    assert len(told) == n_images and f"{tar} ends before its image 0" in told[0]


def test_a_changed_byte_is_found(root: Path) -> None:
    tar = root / "val-000000.tar"
    content = bytearray(tar.read_bytes())
    content[int(shard_index.of(tar).offsets[1]) + 300] ^= 1
    tar.write_bytes(content)
    with pytest.raises(DataError, match="val-000000.tar: 000001_.*.jpg is damaged, its checksum is another"):
        list(opened(root).test_batches(4))
    assert list(shards.damaged(opened(root).test)) == [
        f"{tar}: its checksum is not that of its index: copy it again"
    ]


def test_tar_files_from_elsewhere_need_no_index(root: Path) -> None:
    expected = next(opened(root).test_batches(10))
    (root / "dataset.json").unlink()
    for path in root.glob("*.index.json"):
        path.unlink()
    found = opened(root)
    assert found.classes == ("0", "1") and torch.equal(next(found.test_batches(10))[0], expected[0])


def test_folders_that_are_none(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        opened(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no tar files .* latentbit data shard IMAGES"):
        opened(tmp_path / "empty")
    (root / "dataset.json").write_text(json.dumps({"classes": ["only"]}))
    with pytest.raises(DataError, match="names 1 classes, and the shards have 2"):
        opened(root)
    (root / "dataset.json").write_text("[]")
    with pytest.raises(DataError, match="is no list of contents"):
        opened(root)
    (root / "dataset.json").unlink()
    (root / "val-000000.tar").rename(root / "part.tar")
    with pytest.raises(DataError, match="part.tar: is it for training or for the test"):
        opened(root)
    with pytest.raises(DataError, match="shards need a folder"):
        data.open(recipes.Data(dataset="shards"))


def test_checksum_tells_data_sets_apart(made: Path, root: Path) -> None:
    assert opened(made).checksum() == opened(root).checksum()
    index = json.loads((root / "val-000000.index.json").read_text())
    (root / "val-000000.index.json").write_text(json.dumps(index | {"sha256": "0"}))
    assert opened(made).checksum() != opened(root).checksum()
