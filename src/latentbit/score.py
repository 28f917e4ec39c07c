"""An accuracy as what it is: correct answers out of all, so many that chance leaves an interval."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """Correct answers out of all."""

    correct: int
    total: int
    in_top5: int | None = None
    """Images whose class is among the five likeliest; counted from 50 classes on."""

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's 95 % confidence interval of the accuracy, sound near 0 and 1 too."""
        n, p = self.total, self.accuracy
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval()
        top5 = "" if self.in_top5 is None else f", top-5 {100 * self.in_top5 / self.total:.2f} %"
        counts = f"{self.correct}/{self.total}, 95 % CI {100 * low:.2f}-{100 * high:.2f}"
        return f"{100 * self.accuracy:.2f} %{top5} ({counts})"
