"""How fast a packed network runs here: loading, latency per thread count, and where the time goes, step by step."""

import os
import resource
import sys
import time
from dataclasses import dataclass

import numpy as np

from latentbit import zoo
from latentbit.engine import Engine, load
from latentbit.lbit import Network


@dataclass(frozen=True)
class Latency:
    """Of one call, in milliseconds."""

    threads: int
    batch: int
    least: float
    median: float
    p95: float

    @property
    def images_per_second(self) -> float:
        """At the median."""
        return 1e3 * self.batch / self.median


@dataclass(frozen=True)
class Loading:
    """Of a file that the system has in its cache, until the engine can run."""

    file_bytes: int
    least: float
    """Milliseconds."""
    weight_bytes: int
    """Weights as the kernels hold them."""


def loading(path: str | os.PathLike[str], times: int = 5) -> Loading:
    """Load a file again and again."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        engine = load(path)
        took.append(1e3 * (time.perf_counter() - start))
    return Loading(os.path.getsize(zoo.located(path)), min(took), engine.n_bytes["weights"])


def peak_bytes() -> int:
    """The most memory that this process ever had (resident)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def noise(network: Network, batch: int, in_bytes: bool = False) -> np.ndarray:
    """Images to time with; their content does not matter to the engine."""
    rng, shape = np.random.default_rng(0), (batch, *network.input_shape)
    if in_bytes:
        return rng.integers(0, 256, shape, np.uint8)
    return rng.normal(size=shape).astype(np.float32)


def latency(engine: Engine, batch: int = 1, seconds: float = 1.0, in_bytes: bool = False) -> Latency:
    """Call the engine again and again for that long, at least 10 times, or 3 times with a batch."""
    images = noise(engine.network, batch, in_bytes)
    engine(images, "nchw")
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < (10 if batch == 1 else 3) or time.perf_counter() < end:
        start = time.perf_counter()
        engine(images, "nchw")
        times.append(1e3 * (time.perf_counter() - start))
    return Latency(
        engine.threads, batch, min(times), float(np.median(times)), float(np.percentile(times, 95))
    )
