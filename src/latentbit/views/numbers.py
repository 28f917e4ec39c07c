"""The accuracies of a binary network: their names, what they mean, and the order in which they are shown.

Three can be had of any binary network. The fourth exists in training with a latent loss only.

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
    "latent weights, BatchNorm statistics collected anew",
    "has the same latent weights with hard tanh instead of sign and BatchNorm statistics collected for them anew.",
)
W_TRACKED = Number(
    "W_tracked",
    "accuracy_w_tracked",
    "W‡",
    "latent weights, BatchNorm statistics tracked in training",
    "is W† with the BatchNorm statistics that the latent view tracked in training.",
)

NUMBERS = (B, W, W_DAGGER)
IN_TRAINING = (*NUMBERS, W_TRACKED)
CHOOSING = "accuracy_b_val"
"""In metrics.jsonl: B on the images that were kept apart for choosing an epoch."""
BY_KEY = {number.key: number for number in NUMBERS}
EXPLAINED = " ".join(f"{number.name} {number.meaning}" for number in NUMBERS)
