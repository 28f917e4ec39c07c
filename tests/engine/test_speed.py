from pathlib import Path

from lbit_networks import block_network

from latentbit.engine import Engine
from latentbit.engine.speed import latency, loading, noise, peak_bytes
from latentbit.lbit import write


def test_latency_is_ordered_and_counts_images() -> None:
    row = latency(Engine(block_network(), threads=2), batch=3, seconds=0.01)
    assert 0 < row.least <= row.median <= row.p95
    assert (row.threads, row.batch) == (2, 3)
    assert row.images_per_second == 3e3 / row.median


def test_noise_fits_the_network() -> None:
    assert noise(block_network(), 4).shape == (4, 3, 8, 8)
    assert noise(block_network(), 4, in_bytes=True).dtype == "uint8"


def test_loading_tells_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.lbit"
    write(block_network(), path)
    found = loading(path)
    assert found.file_bytes == path.stat().st_size and found.least > 0
    assert found.weight_bytes == Engine(block_network()).n_bytes["weights"]
    assert peak_bytes() > found.weight_bytes
