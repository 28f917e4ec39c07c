"""Small archives in each form that CIFAR is handed around in, made from the same records."""

import io
import json
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from latentbit.data.archives import Layout


def records(layout: Layout, seed: int = 0, part: int = 3) -> dict[str, np.ndarray]:
    """`part` records for each part of the layout."""
    rng = np.random.default_rng(seed)
    sizes = {"train": part * len(layout.train), "test": part * len(layout.test)}
    made = {
        split: rng.integers(0, 256, (n, layout.n_labels + 3072), dtype=np.uint8) for split, n in sizes.items()
    }
    for found in made.values():
        found[:, : layout.n_labels] %= 10
    return made


def pack(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"folder/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def parts(layout: Layout, made: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for split, names in (("train", layout.train), ("test", layout.test)):
        found |= dict(zip(names, np.split(made[split], len(names)), strict=True))
    return found


def binary(layout: Layout, made: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {f"{name}.bin": r.tobytes() for name, r in parts(layout, made).items()}


def sheets(layout: Layout, made: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    members = {}
    for name, r in parts(layout, made).items():
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(r[:, 1:].reshape(-1, 3, 1024).transpose(0, 2, 1))).save(
            file, "PNG"
        )
        members[f"{name}.png"] = file.getvalue()
    for split, r in made.items():
        members[f"{split}_lables.json"] = json.dumps(r[:, 0].tolist()).encode()
    return members


def python2_pickle(entries: Mapping[str, np.ndarray | list[int]]) -> bytes:
    """What Python 2's cPickle writes for a dict of lists of int and uint8 arrays, opcode by opcode."""

    def string(value: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(value)) + value

    def integer(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    out = b"\x80\x02}("
    for key, value in entries.items():
        out += string(key.encode())
        if isinstance(value, list):
            out += b"](" + b"".join(map(integer, value)) + b"e"
            continue
        out += b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        out += b"(K\x01" + integer(value.shape[0]) + integer(value.shape[1]) + b"\x86"
        out += b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + integer(-1) * 2 + b"K\x00tb"
        out += b"\x89" + string(value.tobytes()) + b"tb"
    return out + b"u."


def python(layout: Layout, made: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    keys = ["labels"] if layout.n_labels == 1 else ["coarse_labels", "fine_labels"]
    return {
        name: python2_pickle(
            {"data": r[:, layout.n_labels :], **{key: r[:, i].tolist() for i, key in enumerate(keys)}}
        )
        for name, r in parts(layout, made).items()
    }
