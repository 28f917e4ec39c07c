"""Differences between two contenders, paired over seeds: the same seed gives both the same data order."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
T_QUANTILES = (
    (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139)
    + (2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963)
    + (2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272)
)


@dataclass(frozen=True)
class Difference:
    """Mean of the differences over seeds, and half of its 95 % interval."""

    mean: float
    half: float

    @property
    def shown(self) -> bool:
        """Whether the interval leaves out 0."""
        return abs(self.mean) > self.half

    def __str__(self) -> str:
        """In points: "+1.93 (0.41 to 3.45)"."""
        low, high = 100 * (self.mean - self.half), 100 * (self.mean + self.half)
        return f"{100 * self.mean:+.2f} ({low:+.2f} to {high:+.2f})"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Difference | None:
    """`ours` less `theirs`, seed by seed; None for fewer than two seeds that both have."""
    each = [a - b for a, b in zip(ours, theirs, strict=False)]
    if len(each) < 2:
        return None
    freedom = len(each) - 1
    quantile = T_QUANTILES[min(freedom, len(T_QUANTILES)) - 1]
    return Difference(statistics.fmean(each), quantile * statistics.stdev(each) / math.sqrt(len(each)))
