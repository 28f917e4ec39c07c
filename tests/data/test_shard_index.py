"""shard_index: tar files from elsewhere, indices that are damaged."""

import hashlib
import io
import json
import tarfile
import zlib
from pathlib import Path

import pytest

from latentbit.data import shard_index
from latentbit.data.dataset import DataError
from latentbit.data.shard_index import Index


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


MEMBERS = {
    "a/x.jpg": b"first",
    "a/x.cls": b"3\n",
    "a/x.json": b'{"label": 9}',
    "y.seg.png": b"no image of the sample",
    "y.JPEG": b"second image",
    "y.json": b'{"cls": 1}',
    "notes.txt": b"hello",
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path / "cache"))


def test_a_tar_file_from_elsewhere_is_gone_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tar = tar_of(tmp_path / "train.tar", MEMBERS)
    index = shard_index.of(tar)
    whole = tar.read_bytes()
    found = [whole[o : o + n] for o, n in zip(index.offsets, index.sizes, strict=True)]
    assert found == [b"first", b"second image"] and index.labels.tolist() == [3, 1]
    assert index.crc32.tolist() == [zlib.crc32(content) for content in found]
    assert (index.n_bytes, index.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    with monkeypatch.context() as context:
        context.setattr(shard_index, "scan", None)
        assert shard_index.of(tar).offsets.tolist() == index.offsets.tolist(), "from the cache"
    tar_of(tar, {"z.png": b"other", "z.cls": b"0"})
    assert shard_index.of(tar).labels.tolist() == [0], "another file of the same name"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"x.jpg": b"1"}, "x has an image and no class: each image needs a x.cls"),
        ({"x.jpg": b"1", "x.cls": b"cat"}, "x.cls holds no number of a class"),
        ({"x.txt": b"1"}, "has no images with classes"),
    ],
)
def test_tar_files_that_hold_something_else(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        shard_index.of(tar_of(tmp_path / "val.tar", members))


def test_what_is_no_tar_file(tmp_path: Path) -> None:
    tar = tmp_path / "train.tar"
    tar.write_bytes(b"x" * 2000)
    with pytest.raises(DataError, match="train.tar cannot be read as a tar file"):
        shard_index.of(tar)


def test_written_and_read(tmp_path: Path) -> None:
    index = shard_index.scan(tar_of(tmp_path / "train.tar", MEMBERS))
    index.write(tmp_path / "i.json")
    again = Index.read(tmp_path / "i.json")
    assert again.sha256 == index.sha256 and (again.crc32 == index.crc32).all() and len(again) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "its format is 'x'"),
        ({"labels": [1]}, "not equally long"),
        ({"offsets": [0, 10**9]}, "points outside"),
        ({"offsets": [-1, 0]}, "points outside"),
        ({"labels": [-1, 0]}, "negative class"),
        ({"sizes": "many"}, "is no index"),
        ({"crc32": [[1], [2]]}, "not equally long"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "i.json"
    shard_index.scan(tar_of(tmp_path / "train.tar", MEMBERS)).write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message):
        Index.read(path)
