"""The mean of a number over seeds, with its 95 % interval."""

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
class Mean:
    """Of one number over seeds. One seed has no interval."""

    value: float
    half: float | None
    """Half the width of the 95 % interval (Student's t)."""

    @staticmethod
    def of(values: Sequence[float]) -> "Mean":
        """Beyond 31 values the last quantile is used, which is a little too wide."""
        if len(values) < 2:
            return Mean(values[0], None)
        quantile = T_QUANTILES[min(len(values) - 1, len(T_QUANTILES)) - 1]
        return Mean(statistics.fmean(values), quantile * statistics.stdev(values) / math.sqrt(len(values)))
