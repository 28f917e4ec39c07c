"""archives: every form gives the same records; hostile pickles build nothing."""

import io
import os
import pickle
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from data import cifar_files

from latentbit.data import archives
from latentbit.data.archives import CIFAR10, CIFAR100, Layout
from latentbit.data.dataset import DataError

FORMS = [
    (CIFAR10, cifar_files.binary),
    (CIFAR10, cifar_files.python),
    (CIFAR10, cifar_files.sheets),
    (CIFAR100, cifar_files.binary),
    (CIFAR100, cifar_files.python),
]


@pytest.mark.parametrize(("layout", "form"), FORMS)
def test_every_form_gives_the_records(tmp_path: Path, layout: Layout, form: object) -> None:
    made = cifar_files.records(layout)
    members = form(layout, made)  # type: ignore[operator]
    found = archives.read(cifar_files.pack(tmp_path / "a.tar.gz", members), layout)
    assert all(np.array_equal(found[split], made[split]) for split in ("train", "test"))
    for name, content in members.items():
        (tmp_path / name).write_bytes(content)
    found = archives.read(tmp_path, layout)
    assert all(np.array_equal(found[split], made[split]) for split in ("train", "test"))


def test_our_python2_pickle_is_one_that_pickle_reads() -> None:
    made = np.arange(6, dtype=np.uint8).reshape(2, 3)
    found = pickle.loads(cifar_files.python2_pickle({"data": made, "labels": [1, 2]}), encoding="bytes")
    assert np.array_equal(found[b"data"], made) and found[b"labels"] == [1, 2]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch pwned",)


@pytest.mark.parametrize(
    "payload",
    [
        pickle.dumps({"data": Evil()}),
        pickle.dumps({b"data": np.array([Evil()], dtype=object), b"labels": [1]}),
        pickle.dumps(np.load),
        pickle.dumps([1, 2]),
        pickle.dumps({b"labels": [1]}),
        b"\x80\x02cbuiltins\neval\n(S'1'\ntR.",
        b"\x80\x02U\x01xQ.",
        b"",
        b"garbage",
        cifar_files.python2_pickle({"data": np.zeros((3, 3072), np.uint8), "labels": [1, 2, 3]})[:-40],
        cifar_files.python2_pickle({"data": np.zeros((3, 3072), np.uint8), "labels": [1, 2]}),
    ],
)
def test_hostile_and_broken_batches_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, payload: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    members = cifar_files.python(CIFAR10, cifar_files.records(CIFAR10)) | {"data_batch_2": payload}
    with pytest.raises(DataError, match="data_batch_2"):
        archives.read(cifar_files.pack(tmp_path / "a.tar.gz", members), CIFAR10)
    assert not (tmp_path / "pwned").exists()


def test_broken_archives_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    members = cifar_files.binary(CIFAR10, cifar_files.records(CIFAR10))
    whole = cifar_files.pack(path, members).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read as an archive"):
        archives.read(path, CIFAR10)
    cifar_files.pack(path, members | {"test_batch.bin": b"x" * 3074})
    with pytest.raises(DataError, match="not a whole number of records"):
        archives.read(path, CIFAR10)
    with pytest.raises(DataError, match="not a CIFAR archive of this kind"):
        archives.read(path, CIFAR100)
    sheets = cifar_files.sheets(CIFAR10, cifar_files.records(CIFAR10))
    cifar_files.pack(path, sheets | {"test_batch.png": sheets["test_batch.png"][:-30]})
    with pytest.raises(DataError, match="test_batch.png"):
        archives.read(path, CIFAR10)
    cifar_files.pack(path, sheets | {"test_lables.json": b"[1]"})
    with pytest.raises(DataError, match="3 test images but labels of shape"):
        archives.read(path, CIFAR10)
    with pytest.raises(DataError, match="cannot be read"):
        archives.read(tmp_path / "nowhere.tar.gz", CIFAR10)


def test_an_archive_that_unpacks_to_gigabytes_costs_little(tmp_path: Path) -> None:
    """2.3 GB of zeros in 2 MB: what no CIFAR archive holds is not unpacked into memory."""
    path = tmp_path / "a.tar.gz"
    zeros = bytes(1 << 24)
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for i in range(20):
            info = tarfile.TarInfo(f"junk_{i}")
            info.size = len(zeros)
            tar.addfile(info, io.BytesIO(zeros))
    tracemalloc.start()
    with pytest.raises(
        DataError, match="more than 1000 files or 268435456 bytes: it is not an archive of CIFAR"
    ):
        archives.read(path, CIFAR10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    with tarfile.open(path, "w:gz") as tar:
        for i in range(1001):
            tar.addfile(tarfile.TarInfo(f"empty_{i}"))
    with pytest.raises(DataError, match="more than 1000 files"):
        archives.read(path, CIFAR10)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a memo of 2^31 places, which the unpickler in C would reserve
        # Lists in lists, ten times the same one: 10^12 labels if somebody wrote them all out.
        b"\x80\x02}(T\x06\x00\x00\x00labels](K\x01e" + b"q\x00](" + b"h\x00" * 10 + b"e" + b"u.",
    ],
)
def test_pickles_that_grow_are_refused(tmp_path: Path, payload: bytes) -> None:
    members = cifar_files.python(CIFAR10, cifar_files.records(CIFAR10)) | {"data_batch_1": payload}
    with pytest.raises(DataError, match="data_batch_1"):
        archives.read(cifar_files.pack(tmp_path / "a.tar.gz", members), CIFAR10)


def test_unpickler_knows_three_names_and_no_numpy() -> None:
    unpickler = archives._Batch(io.BytesIO(b""))
    for module, name in archives._Batch.NAMES:
        assert unpickler.find_class(module, name).__module__ == "latentbit.data.archives"
