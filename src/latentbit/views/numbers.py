"""The three accuracies of a binary network: their names, what they mean, and the order in which they are shown.

Whoever stores, prints or draws them asks here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """One of the three."""

    key: str
    """In the JSON of an analysis, and in names of files."""
    metric: str
    """In metrics.jsonl."""
    name: str
    """As it is printed."""
    short: str
    """What it is, in a few words."""
    meaning: str
    """What it is, in a sentence that begins with the name."""


B = Number(
    "B",
    "accuracy_b",
    "B",
    "binary network",
    "is the binary network as it ships.",
)
W = Number(
    "W",
    "accuracy_w",
    "W",
    "latent weights, BatchNorm statistics of B",
    "puts the latent weights in place of the binary ones and keeps sign and the BatchNorm statistics of B.",
)
W_DAGGER = Number(
    "W_dagger",
    "accuracy_w_dagger",
    "W†",
    "latent weights, their own BatchNorm statistics",
    "has the same latent weights with BatchNorm statistics of their own and hard tanh instead of sign.",
)

NUMBERS = (B, W, W_DAGGER)
BY_KEY = {number.key: number for number in NUMBERS}
EXPLAINED = " ".join(f"{number.name} {number.meaning}" for number in NUMBERS)
