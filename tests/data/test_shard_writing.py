"""shard_writing: what goes in comes out, the same bytes each time, going on after a stop, a full disk."""

import json
import shutil
import tarfile
from collections import namedtuple
from pathlib import Path

import pytest
from data import jpeg_files

from latentbit import atomic
from latentbit.data import folders, shard_index, shard_writing, shards
from latentbit.data.dataset import DataError


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jpeg_files.folder(tmp_path_factory.mktemp("images"), {"train": 12, "val": 3})


def _contents(dest: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in dest.iterdir() if path.name != ".lock"}


def test_every_image_is_there_with_its_class(source: Path, tmp_path: Path) -> None:
    made = shard_writing.write(source, tmp_path / "s", 8_000)
    assert (made.n_images, made.n_kept) == (30, 0) and made.n_shards > 4
    train, test, classes = shards.find(tmp_path / "s")
    files = folders.find(source)
    assert classes == files[2] == ("a", "b") and (len(train), len(test)) == (24, 6)
    for found, given in ((train, files[0]), (test, files[1])):
        pairs = sorted((found.content(i), int(found.labels[i])) for i in range(len(found)))
        assert pairs == sorted((given.content(i), int(given.labels[i])) for i in range(len(given)))
    assert train.labels.tolist() != sorted(train.labels), "neighbours are of different classes"


def test_the_layout_is_that_of_webdataset(source: Path, tmp_path: Path) -> None:
    shard_writing.write(source, tmp_path, 10**9)
    with tarfile.open(tmp_path / "train-000000.tar") as tar:
        names = tar.getnames()
        assert tar.getmembers()[0].mtime == 0
    assert len(names) == 48 and names[0].endswith(".jpg")
    assert [name.replace(".jpg", ".cls") for name in names[::2]] == names[1::2]
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "train-000000.tar", tmp_path / "elsewhere")
    ours = shard_index.of(tmp_path / "train-000000.tar")
    scanned = shard_index.scan(tmp_path / "elsewhere" / "train-000000.tar")
    assert ours.sha256 == scanned.sha256 and ours.n_bytes == scanned.n_bytes
    assert all((getattr(ours, name) == getattr(scanned, name)).all() for name in shard_index.COLUMNS)


def test_stopped_it_goes_on_and_ends_with_the_same_bytes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_writing.write(source, tmp_path / "whole", 8_000)
    taken = []

    def stopping(self: folders.Files, index: int) -> bytes:
        taken.append(index)
        if len(taken) == 15:
            raise KeyboardInterrupt
        return content(self, index)

    content = folders.Files.content
    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(folders.Files, "content", stopping)
        shard_writing.write(source, tmp_path / "s", 8_000)
    assert not list((tmp_path / "s").glob(".*.tmp"))
    with pytest.raises(DataError, match="is not complete: .* Type the command that made it again"):
        shards.find(tmp_path / "s")
    (tmp_path / "s" / ".train-000003.tar.x.tmp").write_bytes(b"of a process that was killed")
    made = shard_writing.write(source, tmp_path / "s", 8_000)
    assert 0 < made.n_kept < made.n_shards
    assert _contents(tmp_path / "s") == _contents(tmp_path / "whole")


def test_a_shard_that_changed_is_made_again(source: Path, tmp_path: Path) -> None:
    shard_writing.write(source, tmp_path, 8_000)
    before = _contents(tmp_path)
    (tmp_path / "train-000001.tar").write_bytes(b"short")
    (tmp_path / "train-000002.index.json").unlink()
    made = shard_writing.write(source, tmp_path, 8_000)
    assert made.n_shards - made.n_kept == 2 and _contents(tmp_path) == before


def test_too_little_room_is_said_before_anything_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 0, 5000))
    with pytest.raises(DataError, match="take .* bytes, and 5,000 are free: make room there"):
        shard_writing.write(source, tmp_path / "s", 8_000)
    assert not list((tmp_path / "s").glob("*.tar"))


def test_a_disk_that_fills_up_leaves_whole_shards(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write(self: atomic._Counted, content: bytes) -> int:
        written.append(len(content))
        if sum(written) > 20_000:
            raise OSError(28, "No space left on device")
        return usual(self, content)

    usual = atomic._Counted.write
    with (
        monkeypatch.context() as context,
        pytest.raises(atomic.WriteError, match="No space left .*make room"),
    ):
        context.setattr(atomic._Counted, "write", write)
        shard_writing.write(source, tmp_path, 8_000)
    tars = list(tmp_path.glob("*.tar"))
    assert tars and all(path.stat().st_size == shard_index.of(path).n_bytes for path in tars)
    assert shard_writing.write(source, tmp_path, 8_000).n_kept == len(tars)


def test_places_that_make_no_sense(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is inside .*, the folder of images"):
        shard_writing.write(source, source / "shards", 8_000)
    shard_writing.write(source, tmp_path, 8_000)
    with pytest.raises(DataError, match="already holds other shards"):
        shard_writing.write(source, tmp_path, 10**9)
    assert json.loads((tmp_path / "dataset.json").read_text())["classes"] == ["a", "b"]
