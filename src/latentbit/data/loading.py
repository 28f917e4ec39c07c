"""Worker processes that read ahead: the one place where a torch DataLoader is made."""

import functools
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils import data as torch_data

from latentbit.data.dataset import DataError
from latentbit.errors import LatentbitWarning

AHEAD = 2
"""Batches that each worker has in work or ready."""
SHARED = "/dev/shm"
"""Where Linux keeps memory that processes share."""


def loaded(
    items: Any, keys: Iterable[Any], workers: int, collate: Callable[[list[Any]], Any], pin: bool = False
) -> Iterator[Any]:
    """What `collate` makes of the items of each batch of keys, in order."""
    if workers > (cores := _cores()):
        _tell_once(
            f"workers = {workers}, and this machine has {cores} cores: more of them than cores read no faster"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")  # the same, in a paragraph
        batches = iter(
            torch_data.DataLoader(
                items,
                batch_sampler=keys,
                num_workers=workers,
                prefetch_factor=AHEAD if workers else None,
                collate_fn=collate,
                pin_memory=pin,
                generator=torch.Generator(),  # the loader seeds its workers: not from the global state
            )
        )
    yield from batches


@functools.cache
def _tell_once(what: str) -> None:
    """Not in every epoch: catch_warnings makes Python forget what it has shown."""
    warnings.warn(what, LatentbitWarning, stacklevel=3)


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Slots:
    """Batches of bytes in shared memory: workers fill them, the trainer reads them, and no pixel is copied between.

    They are used again and again, so their pages are mapped once.
    """

    def __init__(self, workers: int, shape: tuple[int, ...]) -> None:
        count = AHEAD * workers + 1  # one is with the trainer
        tensors = [torch.empty(shape, dtype=torch.uint8) for _ in range(count)]
        if workers:
            _require_shared_memory(count * tensors[0].nbytes, workers)
            for tensor in tensors:
                tensor.share_memory_()
        self.tensors = tuple(tensors)
        self.free = list(range(count))

    def __getitem__(self, slot: int) -> Tensor:
        return self.tensors[slot]

    def keyed(self, batches: Iterable[Any]) -> Iterator[list[Any]]:
        """Each batch with a slot that nobody uses."""
        for batch in batches:
            yield [(self.free.pop(), batch)]

    def release(self, slot: int) -> None:
        """The trainer has what it needs of it."""
        self.free.append(slot)


def _require_shared_memory(n_bytes: int, workers: int) -> None:
    """A process that touches shared memory which is not there dies without a word."""
    try:
        free = shutil.disk_usage(SHARED).free
    except OSError:  # another system
        return
    if n_bytes > free:
        raise DataError(
            f"{workers} workers need {n_bytes >> 20} MB of shared memory, and {SHARED} has {free >> 20} MB free: set "
            "workers= or batch_size= lower, or give it more (docker run --shm-size=8g)"
        )
