import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import run_directory

from latentbit import lbit
from latentbit.data import DataError
from latentbit.packing.pack_run import compare, pack_run
from latentbit.runs.directory import RunError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_directory.make(tmp_path_factory.mktemp("runs") / "small")


def test_compare_counts_classes_and_differences() -> None:
    a = np.array([[0, 4], [1, 0]], np.float32)
    b = np.array([[0, 3], [1, 2]], np.float32)
    agreement = compare(a, b)
    assert (agreement.n_images, agreement.n_same, agreement.n_close, agreement.largest) == (2, 1, 0, 0.5)
    assert "1 of 2" in str(agreement)
    assert compare(a * 0, a * 0).largest == 0
    assert compare(a, a).n_close == 2
    maps = np.zeros((2, 3, 4, 4), np.float32)
    maps[:, 1] = 1
    other = maps.copy()
    other[0, 2, 3, 3] = 1.5  # one pixel of one image
    agreement = compare(maps, other)
    assert (agreement.n_same, agreement.n_close, agreement.largest) == (1, 1, 1.5)


def test_a_run_packs_with_all_that_describes_it(run: Path) -> None:
    packed_run = pack_run(run)
    network = packed_run.network
    assert network.input_shape == (1, 8, 8) and network.classes == tuple("0123456789")
    assert network.mean is not None and network.std is not None
    assert network.source["dataset"] == "digits" and network.source["method"] == "sign"
    # Every test digit: the engine gives PyTorch's class, and logits within 1e-4.
    assert packed_run.with_torch.n_images == packed_run.with_torch.n_same == 360
    assert packed_run.with_torch.largest < 1e-4
    assert packed_run.with_float32 is None
    json.dumps(packed_run.as_dict())


def test_fewer_float_bits_are_compared_with_32(run: Path) -> None:
    packed_run = pack_run(run, which="last", float_bits=8, n_images=100)
    assert packed_run.with_float32 is not None and packed_run.with_float32.n_images == 100
    assert 0 < packed_run.with_float32.largest < 1
    assert packed_run.with_torch.largest < 1e-4


def test_a_stem_in_fewer_bits_is_compared_with_32(run: Path) -> None:
    packed_run = pack_run(run, which="last", stem_bits=8, n_images=100)
    assert packed_run.with_float32 is not None and 0 < packed_run.with_float32.largest < 1
    stored = [
        layer.tensors["weight"].dtype.itemsize
        for layer in packed_run.network.layers
        if "weight" in layer.tensors
    ]
    assert stored == [1, 4]


def test_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "picture.png").touch()
    with pytest.raises(RunError, match="not a run directory"):
        pack_run(tmp_path)
    with pytest.raises(RunError, match="keeps its best and its last network, not 'newest'"):
        pack_run(run_directory.make(tmp_path / "run"), which="newest")


def test_a_copied_run_packs_where_its_data_set_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained elsewhere: the data cache is empty and nothing can be downloaded."""
    here = pack_run(run_directory.make(tmp_path / "there"))

    def no_data(*_: object) -> None:
        raise DataError("the data set is not here")

    monkeypatch.setattr("latentbit.data.open", no_data)
    shutil.copytree(tmp_path / "there", tmp_path / "copy")
    copied = pack_run(tmp_path / "copy")
    assert lbit.to_bytes(copied.network) == lbit.to_bytes(here.network)
    assert copied.accuracy is None and copied.missing == "the data set is not here"
    assert copied.with_torch.n_same == copied.with_torch.n_images == 100
