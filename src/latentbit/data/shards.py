"""Images in tar files: one long read instead of a million small ones, and the same order for any number of processes.

`webdataset` reads such files as streams: which images a process sees depends on how many processes and workers there
are, an epoch has no exact length, and a stream that stopped cannot go on in the middle. So this is a reader of our own.
With the index every image has a number, and order, resume and evaluation are those of all data sets.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress, TaskID

from latentbit.data import sampling, shard_index, store
from latentbit.data.dataset import DataError, Wanted
from latentbit.data.pictures import Pictures
from latentbit.data.shard_index import Index
from latentbit.images import ImageError

CONTENTS = "dataset.json"
"""Names of classes and of all tar files; sets from elsewhere have none, or one with classes alone."""
TRAIN, TEST = {"train", "training"}, {"val", "validation", "valid", "test"}
PIECE_BYTES = 8 << 20
"""Most that is read at once; what is read at once is shuffled as one, so a piece is also not more than ..."""
PIECES = 4096
"""... one of so many parts of the data set. Below so many images each is a piece, and the shuffle is complete."""
OPEN_FILES = 64
REMEMBERED = 4096
"""Pieces that a process has asked for and need not ask for again."""


class Shards:
    """The images of one split, numbered through all its tar files."""

    def __init__(self, tars: list[Path], indices: list[Index]) -> None:
        self.tars = tars
        self.digests = [index.sha256 for index in indices]
        counts = [len(index) for index in indices]
        self.starts = np.cumsum([0, *counts])
        self.shard = np.repeat(np.arange(len(tars), dtype=np.int32), counts)
        self.offsets = _joined([index.offsets for index in indices])
        self.sizes = _joined([index.sizes for index in indices])
        self.labels = _joined([index.labels for index in indices])
        self.crc32 = _joined([index.crc32 for index in indices])
        self.pieces = self._pieces()
        self._asked: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self.shard)

    def _pieces(self) -> np.ndarray:
        """The piece that each image is in, ascending: neighbours in a tar file."""
        most = max(1, len(self) // PIECES)
        within = np.arange(len(self)) - self.starts[self.shard]
        keys = np.stack([self.shard, self.offsets // PIECE_BYTES, within // most], 1)
        changes = np.any(keys[1:] != keys[:-1], axis=1)
        return np.concatenate([np.zeros(min(len(self), 1), np.int64), np.cumsum(changes)])

    def name(self, index: int) -> str:
        """The tar file and the image in it, as the header in front of the image says."""
        tar = self.tars[self.shard[index]]
        try:
            header = os.pread(_opened(str(tar)), 100, max(0, int(self.offsets[index]) - 512))
            return f"{tar}: {header.partition(bytes(1))[0].decode()}"
        except (OSError, UnicodeDecodeError):
            return f"{tar}: image {self._in_shard(index)}"

    def _in_shard(self, index: int) -> int:
        return index - int(self.starts[self.shard[index]])

    def content(self, index: int) -> bytes:
        """The bytes of one image, which have the checksum that the index gives."""
        tar, size = self.tars[self.shard[index]], int(self.sizes[index])
        try:
            file = _opened(str(tar))
            self._read_ahead(file, index)
            content = os.pread(file, size, int(self.offsets[index]))
        except OSError as error:
            raise ImageError(f"{tar} cannot be read ({error.strerror}): copy it again") from None
        if len(content) != size:
            raise ImageError(f"{tar} ends before its image {self._in_shard(index)}: copy it again")
        if zlib.crc32(content) != self.crc32[index]:
            raise ImageError(f"{self.name(index)} is damaged, its checksum is another: copy the file again")
        return content

    def _read_ahead(self, file: int, index: int) -> None:
        """Ask the system for a whole piece, in one long read, when the first of its images is wanted here."""
        piece = int(self.pieces[index])
        if piece in self._asked or not hasattr(os, "posix_fadvise"):
            return
        first, end = np.searchsorted(self.pieces, (piece, piece + 1))
        begin = int(self.offsets[first])
        length = int(self.offsets[end - 1] + self.sizes[end - 1]) - begin
        with contextlib.suppress(OSError):  # advice: what cannot take it is read all the same
            os.posix_fadvise(file, begin, length, os.POSIX_FADV_WILLNEED)
        self._asked[piece] = None
        if len(self._asked) > REMEMBERED:
            del self._asked[next(iter(self._asked))]


def _joined(columns: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *columns])


class _Open:
    """A file that is closed when nobody needs it any more."""

    def __init__(self, path: str) -> None:
        self.number = -1
        self.number = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


@functools.lru_cache(OPEN_FILES)
def _file(tar: str, process: int) -> _Open:
    return _Open(tar)


def _opened(tar: str) -> int:
    """A descriptor of this process: a few files stay open."""
    return _file(tar, os.getpid()).number


class ShardedImages(Pictures[Shards]):
    """See latentbit.data.dataset.Dataset."""

    def __init__(self, root: Path, data: Wanted, device: torch.device) -> None:
        train, test, classes = find(root, data.broken_limit)
        super().__init__("shards", train, test, classes, data, device)

    def checksum(self) -> str:
        """sha256 of the checksums of all tar files, in their order."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            total.update(" ".join(["split", *split.digests]).encode())
        return f"sha256:{total.hexdigest()}"

    def _order(self, plan: sampling.Epoch, seed: int, epoch: int, batch_size: int) -> np.ndarray:
        kept = np.flatnonzero(~self._held_out)
        return kept[sampling.order_in_pieces(seed, epoch, self.train.pieces[kept], batch_size)]


def find(root: Path, broken_limit: int = 0) -> tuple[Shards, Shards, tuple[str, ...]]:
    """Training images, test images and the names of the classes in a folder of tar files."""
    if not root.is_dir():
        raise DataError(f"data.root = {str(root)!r} is not a folder: set root=DIR to the folder of shards")
    classes, tars = _listed(root), splits(root)
    train, test = (opened(one, broken_limit) for one in tars)
    n_classes = 1 + max((int(split.labels.max()) for split in (train, test) if len(split)), default=-1)
    if classes is None:
        return train, test, tuple(map(str, range(n_classes)))
    if len(classes) < n_classes:
        raise DataError(
            f"{root / CONTENTS} names {len(classes)} classes, and the shards have {n_classes}: correct it"
        )
    return train, test, classes


def _listed(root: Path) -> tuple[str, ...] | None:
    """The names of the classes, if there is a list of contents; all that it lists must be there."""
    path = root / CONTENTS
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_bytes())
        classes, names = tuple(map(str, found["classes"])), [str(name) for name in found.get("shards", ())]
    except (ValueError, TypeError, KeyError, AttributeError, OSError, RecursionError) as error:
        raise DataError(f"{path} is no list of contents ({error}): correct or delete it") from None
    missing = [name for name in names if not shard_index.beside(root / name).exists()]
    if missing:
        raise DataError(
            f"{root} is not complete: {len(missing)} of {len(names)} shards are missing, {missing[0]} for instance. "
            f"Type the command that made it again:  latentbit data shard IMAGES {root}"
        )
    return classes


def splits(root: Path) -> tuple[list[Path], list[Path]]:
    """The tar files for training and for the test, by a word in their names or in those of their folders."""
    # A tar file that is lost has left its index.
    indices = (
        path.with_name(path.name.removesuffix(".index.json") + ".tar") for path in root.rglob("*.index.json")
    )
    tars = sorted({*root.rglob("*.tar"), *indices})
    found: tuple[list[Path], list[Path]] = ([], [])
    for tar in tars:
        words = set(re.findall("[a-z]+", str(tar.relative_to(root)).lower()))
        if bool(words & TRAIN) == bool(words & TEST):
            raise DataError(
                f"{tar}: is it for training or for the test? Put train or val into its name, or into that of its folder"
            )
        found[bool(words & TEST)].append(tar)
    if not found[1]:
        raise DataError(
            f"{root} has no tar files with {'val' if tars else 'train and val'} in their names. To make some from a "
            f"folder of images:  latentbit data shard IMAGES {root}"
        )
    return found


def opened(tars: list[Path], broken_limit: int = 0) -> Shards:
    """The images of these tar files; those without an index are gone through once, with a progress bar."""
    known = all(shard_index.beside(tar).exists() for tar in tars)
    indices = [shard_index.of(tar) for tar in tars] if known else _gone_through(tars)
    looked = ((tar, len(index), _damage(tar, index)) for tar, index in zip(tars, indices, strict=True))
    damaged = [one for one in looked if one[2]]
    if sum(count for _, count, _ in damaged) > broken_limit:
        named = "; ".join(f"{tar} {what} ({count} images)" for tar, count, what in damaged[:5])
        more = f" and {len(damaged) - 5} more" if len(damaged) > 5 else ""
        raise DataError(f"{named}{more}: copy them again, or set broken_limit to go without their images")
    return Shards(tars, indices)


def _gone_through(tars: list[Path]) -> list[Index]:
    """Processes of one training look at the same files: one goes through them, the others take its result."""
    found = []
    with (
        store.locked(store.cache() / "shards"),
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("", total=None)
        for tar in tars:
            progress.update(task, description=f"looking for images in {tar.name}", total=tar.stat().st_size)
            found.append(shard_index.of(tar, functools.partial(_show, progress, task)))
    return found


def _show(progress: Progress, task: TaskID, n_bytes: int) -> None:
    progress.update(task, completed=n_bytes)


def _damage(tar: Path, index: Index) -> str:
    """What a look at the file without reading it tells."""
    try:
        n_bytes = tar.stat().st_size
    except OSError as error:
        return f"cannot be opened, {error.strerror}"
    return "" if n_bytes == index.n_bytes else f"has {n_bytes:,} bytes instead of {index.n_bytes:,}"


def damaged(split: Shards) -> Iterator[str]:
    """Read every tar file; a line for each whose checksum is not that of its index."""
    for tar, digest in zip(split.tars, split.digests, strict=True):
        if tar.exists() and store.digest_of(tar, "sha256") != digest:
            yield f"{tar}: its checksum is not that of its index: copy it again"
