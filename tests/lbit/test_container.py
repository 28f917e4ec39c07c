import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors

from latentbit import lbit
from latentbit.lbit import PackedFileError
from latentbit.lbit.container import container_bytes
from latentbit.lbit.core import LIMITS

TENSORS = {
    "b.bias": np.arange(3, dtype=np.float32),
    "a.bits": np.arange(4, dtype=np.uint64).reshape(2, 2),
    "a.flip": np.array([1, 0], np.uint8),
    "a.threshold": np.array([-5, 5], np.int32),
    "b.weight": np.ones((1, 3), np.float16),
    "c.weight": np.full((1, 1, 1, 2), -3, np.int8),
}


def _with_header(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, str) else json.dumps(header)
    raw = text.encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + data


def test_the_safetensors_package_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(container_bytes({"k": "v", "l": "w"}, TENSORS))
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"k": "v", "l": "w"}
        for name, array in TENSORS.items():
            assert np.array_equal(file.get_tensor(name), array)


def test_bytes_do_not_depend_on_the_order_of_tensors() -> None:
    backwards = dict(reversed(TENSORS.items()))
    assert container_bytes({}, TENSORS) == container_bytes({}, backwards)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e999}', "too large"),
        ("[" * 100_000, "deep"),
        ('{"a": ' * 50_000, "deep"),
        ("1" * 10_000, "JSON"),
        ("{", "JSON"),
        ("", "JSON"),
    ],
)
def test_json_traps(text: str, reason: str) -> None:
    with pytest.raises(PackedFileError, match=f"the header.*{reason}"):
        lbit.from_bytes(_with_header(text))


def _entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict:
    return {"__metadata__": {}, "t": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "too few"),
        (b"1234567", "too few"),
        (struct.pack("<Q", 2**63) + b"{}", "header claims"),
        (struct.pack("<Q", 1 << 40), "header claims"),
        (struct.pack("<Q", 3) + b"{} ", "multiple of 8"),
        (struct.pack("<Q", 8) + b"\xff" * 8, "UTF-8"),
        (_with_header([]), "not a JSON object"),
        (_with_header({}), "__metadata__"),
        (_with_header({"__metadata__": {"a": 1}}), "__metadata__"),
        (_with_header({"__metadata__": {}, "t": 1}), "must hold dtype"),
        (_with_header({"__metadata__": {}, "t": _entry()["t"] | {"x": 1}}), "must hold dtype"),
        (_with_header(_entry(dtype="F64")), "dtype 'F64'"),
        (_with_header(_entry(dtype=["F32"])), "dtype"),
        (_with_header(_entry(shape=[2**63])), "out of range"),
        (_with_header(_entry(shape=[-2])), "out of range"),
        (_with_header(_entry(shape=[0])), "out of range"),
        (_with_header(_entry(shape=[True])), "out of range"),
        (_with_header(_entry(shape=[1.0])), "out of range"),
        (_with_header(_entry(shape=[1] * 5)), "1 to 4 sizes"),
        (_with_header(_entry(shape=[])), "1 to 4 sizes"),
        (_with_header(_entry(shape=[2**30, 2**30, 2**30, 2**30])), f"is {2**122} bytes"),
        (_with_header(_entry(offsets=[8, 0])), "offsets hold -8"),
        (_with_header(_entry(offsets=[0])), "two byte offsets"),
        (_with_header(_entry(offsets=[-8, 0])), "two byte offsets"),
        (_with_header(_entry(offsets=[0, 8])), "end at byte 8, the data has 0"),
        (_with_header(_entry(offsets=[2, 10]), b"0" * 10), "aligned"),
        (_with_header(_entry(offsets=[4, 12]), b"0" * 12), "expected at 0"),
        (_with_header(_entry(), b"0" * 9), "the data has 9"),
        (_with_header(_entry() | {"u": _entry()["t"]}, b"0" * 16), "expected at 8"),
    ],
)
def test_bad_containers(content: bytes, reason: str) -> None:
    with pytest.raises(PackedFileError, match=reason):
        lbit.from_bytes(content)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(PackedFileError, match="No such file"):
        lbit.read(tmp_path / "absent")
    with pytest.raises(PackedFileError):
        lbit.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PackedFileError, match="regular"):
        lbit.read(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(LIMITS["file_bytes"] + 1)
    with pytest.raises(PackedFileError, match="more than"):
        lbit.read(tmp_path / "sparse")


def test_a_dtype_without_a_name_is_refused() -> None:
    with pytest.raises(PackedFileError, match="float64"):
        container_bytes({}, {"t": np.ones(1)})
