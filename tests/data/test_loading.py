"""loading: order of what is loaded, slots of shared memory, and too little of it."""

import shutil
from collections import namedtuple

import pytest
import torch

from latentbit.data import loading
from latentbit.data.dataset import DataError
from latentbit.errors import LatentbitWarning


def _same(items: list) -> list:
    return items


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_the_order_of_their_keys(workers: int) -> None:
    squares = [i * i for i in range(20)]
    keys = [[3, 1], [5], [0, 19, 2]]
    assert list(loading.loaded(squares, keys, workers, _same)) == [[9, 1], [25], [0, 361, 4]]


class _Fills:
    def __init__(self, slots: loading.Slots) -> None:
        self.slots = slots

    def __getitem__(self, key: tuple[int, int]) -> int:
        slot, value = key
        self.slots[slot].fill_(value)
        return slot


def _one(items: list[int]) -> int:
    return items[0]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_slots_are_filled_by_workers_and_used_again(workers: int) -> None:
    slots = loading.Slots(workers, (4,))
    seen = []
    for slot in loading.loaded(_Fills(slots), slots.keyed(range(30)), workers, _one):
        seen.append(int(slots[slot][0]))
        assert torch.equal(slots[slot], torch.full((4,), seen[-1], dtype=torch.uint8))
        slots.release(slot)
    assert seen == list(range(30)) and len(slots.tensors) == 2 * workers + 1


def test_too_little_shared_memory_is_said_before_a_process_dies_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 26, 0, 1 << 26))
    with pytest.raises(DataError, match="8 workers need 619 MB of shared memory, and /dev/shm has 64 MB"):
        loading.Slots(8, (254, 3, 224, 224))


def test_more_workers_than_cores_are_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_cores", lambda: 1)
    loading._tell_once.cache_clear()
    with pytest.warns(LatentbitWarning, match="workers = 2, and this machine has 1 cores") as caught:
        for _ in range(2):
            assert list(loading.loaded([1, 2], [[0], [1]], 2, _same)) == [[1], [2]]
    assert [one.category for one in caught] == [LatentbitWarning]
