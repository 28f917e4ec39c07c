"""What a tar file of images holds and where: read from the small file beside it, or by going through it once.

WebDataset's layout: members whose names are equal up to the first dot make one sample, `KEY.jpg` the image, `KEY.cls`
(or a number called label or cls in `KEY.json`) its class. The index of `NAME.tar` is `NAME.index.json`, written by
`latentbit data shard`; that of a tar file from elsewhere is kept in the cache.
"""

import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentbit import images
from latentbit.atomic import WriteError, atomic_write
from latentbit.data import store
from latentbit.data.dataset import DataError

FORMAT = "latentbit shard index 1"
COLUMNS = {"offsets": np.int64, "sizes": np.int64, "labels": np.int64, "crc32": np.uint32}
LARGEST_SIDE_FILE = 1 << 20
"""Bytes of a .cls or .json member."""


@dataclass(frozen=True)
class Index:
    """The images of one tar file, in its order."""

    n_bytes: int
    """Of the tar file."""
    sha256: str
    offsets: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray
    crc32: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets)

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        facts: dict[str, Any] = {"format": FORMAT, "n_bytes": self.n_bytes, "sha256": self.sha256}
        columns = {name: getattr(self, name).tolist() for name in COLUMNS}
        with atomic_write(path) as file:
            file.write(json.dumps(facts | columns, separators=(",", ":")).encode())

    @staticmethod
    def read(path: Path) -> "Index":
        """What `write` wrote; DataError if it is not that."""
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']!r}, not {FORMAT!r}")
            columns = {name: np.array(found[name], kind) for name, kind in COLUMNS.items()}
            index = Index(int(found["n_bytes"]), str(found["sha256"]), **columns)
            if len({column.shape for column in columns.values()}) != 1 or index.offsets.ndim != 1:
                raise ValueError("its lists are not equally long")
            ends = index.offsets + index.sizes
            if len(index) and not (
                (index.offsets >= 0).all() and (index.sizes >= 0).all() and ends.max() <= index.n_bytes
            ):
                raise ValueError("it points outside the tar file")
            if len(index) and index.labels.min() < 0:
                raise ValueError("it has a negative class")
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(
                f"{path} is no index of a shard ({error}): delete it, and it is made again from the tar file"
            ) from None
        return index


def beside(tar: Path) -> Path:
    """Where the index of a tar file is."""
    return tar.with_suffix(".index.json")


def of(tar: Path, report: Callable[[int], None] = lambda n_bytes: None) -> Index:
    """The index of a tar file: the one beside it, the one in the cache, or made now, with the bytes done reported."""
    if beside(tar).exists():
        return Index.read(beside(tar))
    kept = _in_cache(tar)
    if kept.exists():
        return Index.read(kept)
    index = scan(tar, report)
    try:
        index.write(kept)
    except WriteError:
        pass  # the next start takes as long as this one
    return index


def _in_cache(tar: Path) -> Path:
    """By path, size and time of change: another file of the same name has another index."""
    facts = tar.stat()
    named = f"{tar.resolve()} {facts.st_size} {facts.st_mtime_ns}"
    return store.cache() / "shards" / f"{hashlib.sha256(os.fsencode(named)).hexdigest()[:32]}.json"


def scan(tar: Path, report: Callable[[int], None] = lambda n_bytes: None) -> Index:
    """Go through all of a tar file: find its images and classes, and its checksum."""
    found: dict[str, dict[str, Any]] = {}
    total, n_bytes = hashlib.sha256(), 0
    try:
        with tar.open("rb") as file:
            while block := file.read(1 << 22):
                total.update(block)
                n_bytes += len(block)
                report(n_bytes)
        with tarfile.open(tar, "r:") as archive:
            for member in archive:
                _take(archive, member, found)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{tar} cannot be read as a tar file ({error}): copy or download it again") from None
    rows = []
    for key, sample in found.items():
        if "offset" in sample and "label" in sample:
            rows.append((sample["offset"], sample["size"], sample["label"], sample["crc32"]))
        elif "offset" in sample:
            raise DataError(
                f"{tar}: {key} has an image and no class: each image needs a {key}.cls with the number of its class"
            )
    if not rows:
        raise DataError(
            f"{tar} has no images with classes: samples are KEY.jpg beside KEY.cls, as in WebDataset"
        )
    columns = zip(COLUMNS.items(), zip(*rows, strict=True), strict=True)
    return Index(
        n_bytes, total.hexdigest(), **{name: np.array(values, kind) for (name, kind), values in columns}
    )


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, found: dict[str, dict[str, Any]]) -> None:
    folder, _, name = member.name.rpartition("/")
    stem, _, suffix = name.partition(".")
    suffix = suffix.lower()
    if not member.isfile() or not stem:
        return
    sample = found.setdefault(f"{folder}/{stem}" if folder else stem, {})
    if f".{suffix}" in images.SUFFIXES:
        content = archive.extractfile(member)
        assert content is not None
        crc = zlib.crc32(content.read())
        sample |= {"offset": member.offset_data, "size": member.size, "crc32": crc}
    elif suffix in ("cls", "json") and member.size <= LARGEST_SIDE_FILE:
        content = archive.extractfile(member)
        assert content is not None
        label = _label(suffix, content.read())
        if suffix == "cls" and label is None:
            raise ValueError(f"{member.name} holds no number of a class")
        if label is not None:
            sample.setdefault("label", label)


def _label(suffix: str, content: bytes) -> int | None:
    try:
        if suffix == "cls":
            label: Any = int(content)
        else:
            table = json.loads(content)
            label = table.get("label", table.get("cls")) if isinstance(table, dict) else None
    except (ValueError, RecursionError):
        return None
    return label if isinstance(label, int) and not isinstance(label, bool) and label >= 0 else None
