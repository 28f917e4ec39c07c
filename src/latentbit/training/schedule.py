"""Learning rate of every step: linear warm-up, then cosine, linear or constant."""

import math
from typing import Literal


def learning_rate(
    step: int,
    total: int,
    peak: float,
    warmup: int = 0,
    kind: Literal["cosine", "linear", "constant"] = "cosine",
) -> float:
    """Of step `step` of `total`, counted from 0. The warm-up reaches the peak at step `warmup`."""
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = (step - warmup) / max(1, total - warmup)
    if kind == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * done))
    return peak * (1 - done) if kind == "linear" else peak
