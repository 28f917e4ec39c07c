"""A folder of images as tar files: `latentbit data shard SRC DEST`.

Images are copied as they are, in one fixed shuffled order, so that neighbours in a file are of different classes. The
same folder gives the same files, byte for byte. A file is whole under its name, and its index comes after it: what was
stopped goes on with the first file that has none.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from latentbit.atomic import atomic_write, remove_temporary
from latentbit.data import folders, sampling, shard_index, shards, store
from latentbit.data.dataset import DataError
from latentbit.data.folders import Files
from latentbit.data.shard_index import Index
from latentbit.images import ImageError

BLOCK = 512
LONGEST_NAME = 60


class Planned(NamedTuple):
    """One tar file that is to be: its path and the images in it."""

    tar: Path
    split: Files
    images: np.ndarray
    n_bytes: int
    """Of the whole tar file."""


@dataclass(frozen=True)
class Written:
    """What a sharding left."""

    n_images: int
    n_shards: int
    n_bytes: int
    n_kept: int
    """Shards that were there before."""


def write(source: Path, dest: Path, shard_bytes: int) -> Written:
    """Make the shards of an image folder that are not there yet; progress goes to stderr."""
    if dest.resolve() == source.resolve() or source.resolve() in dest.resolve().parents:
        raise DataError(f"{dest} is inside {source}, the folder of images: choose a place beside it")
    train, test, classes = folders.find(source)
    console = Console(stderr=True)
    with console.status(f"looking at {len(train) + len(test):,} files"):
        planned = [*_plan(dest, "train", train, shard_bytes), *_plan(dest, "val", test, shard_bytes)]
    dest.mkdir(parents=True, exist_ok=True)
    with store.locked(dest):
        remove_temporary(dest)
        _refuse_strangers(dest, planned)
        missing = [one for one in planned if not _is_written(one)]
        _require_room(dest, sum(one.n_bytes for one in missing))
        contents = {"classes": list(classes), "shards": [one.tar.name for one in planned]}
        with atomic_write(dest / shards.CONTENTS) as file:
            file.write(json.dumps(contents, ensure_ascii=False, indent=0).encode())
        columns = (
            "{task.description}",
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            total = sum(one.n_bytes for one in planned)
            task = progress.add_task("", total=total, completed=total - sum(one.n_bytes for one in missing))
            for one in missing:
                progress.update(task, description=one.tar.name)
                for n_bytes in _write_one(one):
                    progress.advance(task, n_bytes)
    n_images = sum(len(one.images) for one in planned)
    return Written(n_images, len(planned), total, len(planned) - len(missing))


def _plan(dest: Path, split_name: str, split: Files, shard_bytes: int) -> Iterator[Planned]:
    """Images in shuffled order, as many to a file as fit."""
    order = sampling.fixed_order(len(split))
    try:
        sizes = np.array([os.stat(split.paths[i]).st_size for i in order], np.int64)
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read ({error.strerror}): replace or remove it") from None
    in_tar = 3 * BLOCK + -(-sizes // BLOCK) * BLOCK  # two headers, the class, the image
    before = np.cumsum([0, *in_tar])
    begin, number = 0, 0
    while begin < len(order):
        fitting = int(np.searchsorted(before, before[begin] + shard_bytes, "right")) - 1 - begin
        count = max(1, fitting)
        chosen = slice(begin, begin + count)
        whole = int(in_tar[chosen].sum()) + 2 * BLOCK  # a tar file ends with two empty blocks ...
        whole = -(-whole // tarfile.RECORDSIZE) * tarfile.RECORDSIZE  # ... and is filled up
        yield Planned(dest / f"{split_name}-{number:06d}.tar", split, order[chosen], whole)
        begin, number = begin + count, number + 1


def _is_written(one: Planned) -> bool:
    """Whether the file and its index are there and are of these images."""
    if not (one.tar.exists() and shard_index.beside(one.tar).exists()):
        return False
    index = shard_index.of(one.tar)
    sizes = [os.stat(one.split.paths[i]).st_size for i in one.images]
    same = index.sizes.tolist() == sizes and index.labels.tolist() == one.split.labels[one.images].tolist()
    return same and one.tar.stat().st_size == index.n_bytes


def _refuse_strangers(dest: Path, planned: list[Planned]) -> None:
    """Files of another sharding would be read along with ours."""
    ours = {one.tar for one in planned}
    if others := sorted(set(dest.rglob("*.tar")) - ours):
        raise DataError(
            f"{dest} already holds other shards, {others[0].name} for instance: choose an empty folder, or delete them"
        )


def _require_room(dest: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(dest).free
    if n_bytes > free:
        raise DataError(
            f"the shards that are missing in {dest} take {n_bytes:,} bytes, and {free:,} are free: make room there, or "
            "choose another folder"
        )


class _Hashed:
    """A file to write to that keeps the checksum of what went through."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.total, self.n_bytes = file, hashlib.sha256(), 0

    def write(self, content: bytes) -> int:
        self.total.update(content)
        self.n_bytes += len(content)
        return self.file.write(content)

    def tell(self) -> int:
        return self.n_bytes


def _write_one(one: Planned) -> Iterator[int]:
    """Write a tar file, then its index; yields the bytes of each image as it goes in."""
    rows = []
    with atomic_write(one.tar) as file:
        hashed = _Hashed(file)
        with tarfile.open(fileobj=hashed, mode="w", format=tarfile.USTAR_FORMAT) as tar:  # type: ignore[call-overload]
            for position, image in enumerate(one.images.tolist()):
                begin = hashed.n_bytes
                try:
                    content = one.split.content(image)
                except ImageError as error:
                    raise DataError(str(error)) from None
                label = int(one.split.labels[image])
                key, suffix = _key(one.split.paths[image], position)
                offset = _add(tar, hashed, f"{key}.{suffix}", content)
                _add(tar, hashed, f"{key}.cls", str(label).encode())
                rows.append((offset, len(content), label, zlib.crc32(content)))
                yield hashed.n_bytes - begin
    columns = zip(shard_index.COLUMNS.items(), zip(*rows, strict=True), strict=True)
    arrays = {name: np.array(values, kind) for (name, kind), values in columns}
    Index(hashed.n_bytes, hashed.total.hexdigest(), **arrays).write(shard_index.beside(one.tar))


def _key(path: str, position: int) -> tuple[str, str]:
    """The name of a sample, which has no dot, and what its image is: 000012_n01440764_10026, jpg."""
    stem, dot_suffix = os.path.splitext(os.path.basename(path))
    plain = re.sub("[^A-Za-z0-9_-]", "_", stem)[:LONGEST_NAME]
    suffix = dot_suffix[1:].lower()
    return f"{position:06d}_{plain}", "jpg" if suffix == "jpeg" else suffix


def _add(tar: tarfile.TarFile, hashed: _Hashed, name: str, content: bytes) -> int:
    """Where the content begins; no times and no owners, which would differ from one time to the next."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    begin = hashed.n_bytes
    tar.addfile(info, io.BytesIO(content))
    return begin + BLOCK
