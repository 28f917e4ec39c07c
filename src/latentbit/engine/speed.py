"""How fast a packed network runs here: latency per thread count, and where the time goes, step by step."""

import time
from dataclasses import dataclass

import numpy as np

from latentbit.engine import Engine
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
