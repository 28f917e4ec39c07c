"""The time of a step on many workers, from what was measured on one: a model of input, compute and all-reduce.

    compute     images of the worker / images per second of its device
    input       images of the worker / images per second of the cores that decode for it; ahead, while devices compute
    all-reduce  a ring sends 2 (N - 1) / N of the gradients through every link, in buckets that DDP fills from the last
                layer on: only the bucket that is filled last, and what the backward does not cover, is waited for

`bench/scaling.py` prints it for 1 to 256 workers, next to what 1, 2 and 4 processes take.
"""

from dataclasses import dataclass

BACKWARD = 2 / 3
"""Share of a step that is backward: it computes two products for each one of the forward."""
BUCKET = 25 * 2**20
"""Bytes of gradients that DDP reduces at once."""


@dataclass(frozen=True)
class Work:
    """A step: what has to be done, however many share it."""

    images: int
    """Of all workers together."""
    gradients: int
    """Bytes that every worker brings to the all-reduce."""
    exchanged: int = 0
    """Bytes of what losses and synchronised BatchNorm exchange, for which everybody waits."""


@dataclass(frozen=True)
class Workers:
    """Who does it."""

    count: int
    device: float
    """Images per second of one device: forward, backward and update."""
    decoded: float
    """Images per second of the cores that serve one device; infinite where images lie in its memory."""
    bandwidth: float
    """Bytes per second between two workers."""
    latency: float = 5e-5
    """Seconds of one message."""


@dataclass(frozen=True)
class Step:
    """Seconds of one step, and of what it is made of."""

    compute: float
    input: float
    reduce: float
    """The whole all-reduce, hidden or not."""
    waited: float
    """For the part of it that no computation hides, and for the exchanges of losses."""

    @property
    def seconds(self) -> float:
        return max(self.compute + self.waited, self.input)

    @property
    def bound_by(self) -> str:
        """What to make faster."""
        if self.input > self.compute + self.waited:
            return "input"
        return "all-reduce" if self.waited > self.compute else "compute"


def step(work: Work, workers: Workers) -> Step:
    """One step of these workers."""
    n, images = workers.count, work.images / workers.count
    compute, decode = images / workers.device, images / workers.decoded
    reduce = ring(work.gradients, workers)
    buckets = max(1, -(-work.gradients // BUCKET))
    hidden = min(BACKWARD * compute, reduce * (buckets - 1) / buckets)
    waited = reduce - hidden + (ring(work.exchanged, workers) if n > 1 else 0.0)
    return Step(compute, decode, reduce, waited)


def ring(size: int, workers: Workers) -> float:
    """Seconds to add up `size` bytes over all workers."""
    n = workers.count
    if n == 1 or size == 0:
        return 0.0
    return 2 * (n - 1) * (size / n / workers.bandwidth + workers.latency)
