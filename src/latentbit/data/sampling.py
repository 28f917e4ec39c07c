"""Which image comes when, and how it is cropped: a pure function of (seed, epoch, image), never of a state.

Every process computes the same order and the same draws and takes its rows of each global batch, so R
processes see together what one process sees, and a resumed run sees what an uninterrupted one does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from latentbit.errors import LatentbitError

_ORDER, _DRAWS, _HELD_OUT, _PIECES = 0, 1, 2, 3
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

LANES = 16
"""Parts of a batch that are read from different places of a large data set; see `order_in_pieces`."""
WINDOW = 16
"""Pieces whose images are mixed with each other."""


class BatchError(LatentbitError):
    """A batch size that the data or the number of processes cannot serve."""


def _raw(seed: int, epoch: int, stream: int, count: int) -> np.ndarray:
    """`count` random 63-bit integers; Philox's raw output is the same in every version of NumPy."""
    raw = np.random.Philox(np.random.SeedSequence([seed, epoch, stream])).random_raw(count)
    return (raw >> np.uint64(1)).astype(np.int64)


@dataclass(frozen=True)
class Epoch:
    """The order of one epoch and three random integers for each image: top, left, flip."""

    order: np.ndarray  # (n,) positions -> image
    draws: np.ndarray  # (n, 3) image -> 63-bit integers

    @staticmethod
    def of(seed: int, epoch: int, n: int) -> "Epoch":
        order = np.argsort(_raw(seed, epoch, _ORDER, n), kind="stable")
        return Epoch(order, _raw(seed, epoch, _DRAWS, 3 * n).reshape(n, 3))


def uniforms(draws: np.ndarray, count: int) -> np.ndarray:
    """(n, count) numbers from 0 to below 1 that follow from the n integers `draws`: SplitMix64 started at each."""
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^64
        state = draws.astype(np.uint64)[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def fixed_order(n: int) -> np.ndarray:
    """One shuffle for all runs: for splits, and for reading sorted folders without the sorting."""
    return np.argsort(_raw(0, 0, _ORDER, n), kind="stable")


def held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which images are kept apart: the same share of every class, rounded, at least one where there are two."""
    chosen = np.zeros(len(labels), bool)
    draws = _raw(seed, 0, _HELD_OUT, len(labels))
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        count = min(max(round(share * len(mine)), 1), len(mine) - 1)
        chosen[mine[np.argsort(draws[mine], kind="stable")[:count]]] = True
    return chosen


def steps(n: int, batch_size: int) -> int:
    """Whole batches in n images; the rest is left out, and differs from epoch to epoch."""
    if n < batch_size:
        raise BatchError(f"batch_size = {batch_size} is larger than the training set of {n} images")
    return n // batch_size


def rows(size: int, rank: int, world: int) -> slice:
    """The contiguous rows of a batch of `size` that belong to `rank`: together all, none twice."""
    return slice(size * rank // world, size * (rank + 1) // world)


def order_in_pieces(seed: int, epoch: int, pieces: np.ndarray, batch_size: int) -> np.ndarray:
    """An order for data that is read in pieces: `pieces` holds the piece of each image, counted from 0, ascending.

    Pieces are shuffled, and the images of WINDOW pieces that follow each other are shuffled together. The row
    of pieces is cut in LANES parts of equal length, and each fills the same rows of every batch: a process, which has
    a few rows of each batch, reads a few of the parts and not all data. Nothing depends on the number of processes.
    """
    n, n_pieces = len(pieces), int(pieces[-1]) + 1 if len(pieces) else 0
    place = np.empty(n_pieces, np.int64)
    place[np.argsort(_raw(seed, epoch, _PIECES, n_pieces), kind="stable")] = np.arange(n_pieces)
    window = place[pieces] // WINDOW
    whole = np.lexsort((_raw(seed, epoch, _ORDER, n), window))
    n_steps, lanes = steps(n, batch_size), min(LANES, batch_size)
    order, taken = np.empty((n_steps, batch_size), np.int64), 0
    for lane in range(lanes):
        part = rows(batch_size, lane, lanes)
        count = n_steps * (part.stop - part.start)
        order[:, part] = whole[taken : taken + count].reshape(n_steps, -1)
        taken += count
    return order.reshape(-1)


def train_indices(
    order: np.ndarray, batch_size: int, rank: int, world: int, start_step: int
) -> Iterator[np.ndarray]:
    """The images of this rank, one array for each step from `start_step` on."""
    if batch_size % world:
        raise BatchError(
            f"batch_size = {batch_size} cannot be divided by {world} processes: "
            f"use {batch_size // world * world or world} or {(batch_size // world + 1) * world}"
        )
    part = rows(batch_size, rank, world)
    for step in range(start_step, steps(len(order), batch_size)):
        yield order[step * batch_size : (step + 1) * batch_size][part]


def eval_indices(order: np.ndarray, batch_size: int, rank: int, world: int) -> Iterator[np.ndarray]:
    """Each image once over all ranks; the last batch may be short, and absent on some ranks."""
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        mine = batch[rows(len(batch), rank, world)]
        if len(mine):
            yield mine
