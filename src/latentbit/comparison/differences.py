"""Differences between two contenders, paired over seeds: the same seed gives both the same data order."""

from collections.abc import Sequence
from dataclasses import dataclass

from latentbit.analyze.over_seeds import Mean

LATENT = "+latent"
"""Ends the name of a contender with the latent loss, which is compared with the one of the same name without it."""


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
    mean = Mean.of(each)
    assert mean.half is not None
    return Difference(mean.value, mean.half)
