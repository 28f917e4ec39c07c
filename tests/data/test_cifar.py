"""cifar: sources in turn, checksums, a cache that is whole or absent, and what is said when it is not."""

import dataclasses
import errno
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from data import cifar_files

from latentbit import atomic
from latentbit.data import cifar
from latentbit.data.cifar import CIFAR10, CIFAR100, Cifar, Source
from latentbit.data.dataset import DataError
from latentbit.data.download import Report

CPU = torch.device("cpu")


def small(kind: Cifar, made: dict[str, np.ndarray], *sources: Source) -> Cifar:
    """The data set `kind`, with the records of `made` for its canonical ones."""
    return dataclasses.replace(
        kind,
        n_images={split: len(r) for split, r in made.items()},
        sha256={split: hashlib.sha256(r.tobytes()).hexdigest() for split, r in made.items()},
        sources=sources,
    )


def source(name: str, archive: Path | None, asked: list[str]) -> Source:
    def fetch(path: Path, report: Report) -> None:
        asked.append(name)
        if archive is None:
            raise DataError("unreachable")
        path.write_bytes(archive.read_bytes())

    return Source(name, f"{name}.tar.gz", fetch)


def silent(*_: object) -> None:
    pass


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", [CIFAR10, CIFAR100])
@pytest.mark.parametrize("form", [cifar_files.binary, cifar_files.python])
def test_from_a_file_to_batches(tmp_path: Path, kind: Cifar, form: object) -> None:
    made = cifar_files.records(kind.layout, part=4)
    mine = small(kind, made)
    archive = cifar_files.pack(tmp_path / "a.tar.gz", form(kind.layout, made))  # type: ignore[operator]
    cifar.get(mine, silent, silent, archive)
    assert cifar.check(mine) == [] and archive.exists()
    data = cifar.open(mine, 0, 0, False, CPU)
    labels = mine.layout.n_labels
    assert np.array_equal(data.train.images.numpy().reshape(-1, 3072), made["train"][:, labels:])
    assert data.test.labels.tolist() == made["test"][:, labels - 1].tolist()
    assert (data.in_channels, data.image_size, data.num_classes) == (3, 32, len(kind.classes))


def test_sources_in_turn_until_one_is_right(tmp_path: Path) -> None:
    made = cifar_files.records(CIFAR10.layout)
    right = cifar_files.pack(tmp_path / "r.tgz", cifar_files.sheets(CIFAR10.layout, made))
    other = cifar_files.records(CIFAR10.layout, seed=1)
    wrong = cifar_files.pack(tmp_path / "w.tgz", cifar_files.binary(CIFAR10.layout, other))
    asked: list[str] = []
    chain = (source("dead", None, asked), source("wrong", wrong, asked), source("right", right, asked))
    mine = small(CIFAR10, made, *chain, source("spare", right, asked))
    lines: list[str] = []
    cifar.get(mine, silent, lines.append)
    assert asked == ["dead", "wrong", "right"] and cifar.check(mine) == []
    assert "sha256" in "\n".join(lines)
    kept = sorted(p.name for p in mine.folder.iterdir())
    assert kept == [".lock", "test.safetensors", "train.safetensors"]


def test_no_source_left(tmp_path: Path) -> None:
    asked: list[str] = []
    mine = small(CIFAR10, cifar_files.records(CIFAR10.layout), source("dead", None, asked))
    with pytest.raises(DataError, match=r"dead: unreachable\n.*data get cifar10 --from FILE"):
        cifar.get(mine, silent, silent)
    with pytest.raises(DataError, match="cannot be read"):
        cifar.get(mine, silent, silent, tmp_path / "nowhere")


def test_a_wrong_archive_changes_nothing(tmp_path: Path) -> None:
    made = cifar_files.records(CIFAR10.layout)
    mine = small(CIFAR10, made)
    good = cifar_files.pack(tmp_path / "a.tgz", cifar_files.binary(CIFAR10.layout, made))
    cifar.get(mine, silent, silent, good)
    made["test"] = made["test"].copy()
    made["test"][1, 99] ^= 1
    bad = cifar_files.pack(tmp_path / "b.tgz", cifar_files.binary(CIFAR10.layout, made))
    with pytest.raises(DataError, match="b.tgz: test has sha256"):
        cifar.get(mine, silent, silent, bad)
    assert cifar.check(mine) == []


def test_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cifar_files.records(CIFAR10.layout)
    mine = small(CIFAR10, made)
    good = cifar_files.pack(tmp_path / "a.tgz", cifar_files.binary(CIFAR10.layout, made))

    class Full(io.FileIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.io, "FileIO", Full)
    with pytest.raises(DataError, match="No space left on device.*set LATENTBIT_CACHE to another folder"):
        cifar.get(mine, silent, silent, good)
    assert [p.name for p in mine.folder.iterdir()] == [".lock"]


def test_check_names_what_is_wrong(tmp_path: Path) -> None:
    made = cifar_files.records(CIFAR10.layout)
    mine = small(CIFAR10, made)
    good = cifar_files.pack(tmp_path / "a.tgz", cifar_files.binary(CIFAR10.layout, made))
    assert len(cifar.check(mine)) == 2
    cifar.get(mine, silent, silent, good)
    train, test = mine.path("train"), mine.path("test")
    content = bytearray(train.read_bytes())
    content[-1] ^= 1
    train.write_bytes(content)
    test.write_bytes(test.read_bytes()[:-10])
    first, second = cifar.check(mine)
    assert "train has sha256" in first and "latentbit data get cifar10" in first
    assert "test.safetensors is broken" in second and "latentbit data get cifar10" in second
    with pytest.raises(DataError, match="test.safetensors is broken"):
        cifar.open(mine, 0, 2, False, CPU)
    cifar.get(mine, silent, silent, good)
    assert cifar.check(mine) == []


def test_names_of_classes() -> None:
    assert len(set(CIFAR10.classes)) == 10 and len(set(CIFAR100.classes)) == 100
    assert list(CIFAR100.classes) == sorted(CIFAR100.classes)


@pytest.mark.slow
def test_the_real_cifar10_if_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATENTBIT_CACHE")
    if not CIFAR10.path("train").exists():
        pytest.skip("latentbit data get cifar10")
    assert cifar.check(CIFAR10) == []
    data = cifar.open(CIFAR10, 0, 2, False, CPU)
    assert data.train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert np.bincount(data.test.labels.numpy()).tolist() == [1000] * 10
    scaled = data.train.images.float().flatten(2) / 255
    np.testing.assert_allclose(scaled.mean((0, 2)), CIFAR10.mean, atol=5e-5)
    np.testing.assert_allclose(scaled.std((0, 2)), CIFAR10.std, atol=5e-5)
