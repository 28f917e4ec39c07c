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


def noise(network: Network, batch: int) -> np.ndarray:
    """Images to time with; their content does not matter to the engine."""
    return np.random.default_rng(0).normal(size=(batch, *network.input_shape)).astype(np.float32)


def latency(engine: Engine, batch: int = 1, seconds: float = 1.0) -> Latency:
    """Call the engine again and again for that long, at least 10 times."""
    images = noise(engine.network, batch)
    engine(images)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        engine(images)
        times.append(1e3 * (time.perf_counter() - start))
    return Latency(
        engine.threads, batch, min(times), float(np.median(times)), float(np.percentile(times, 95))
    )
