"""Workers of one start find each other in a store that holds what earlier starts left."""

import contextlib
import threading
import time

import pytest
import torch.distributed as dist

from latentbit.distributed.meeting import meet


def meet_all(store: dist.Store, ranks: list[int], size: int) -> dict[int, dist.Store]:
    met: dict[int, dist.Store] = {}
    threads = [
        threading.Thread(target=lambda r=rank: met.update({r: meet(store, r, size)}), daemon=True)
        for rank in ranks
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.02)  # the order of `ranks` is the order of arrival
    for thread in threads:
        thread.join(20)
    return met


@pytest.mark.parametrize("arrival", [[0, 1, 2], [2, 1, 0]])
def test_a_restart_sees_nothing_of_the_start_before(arrival) -> None:
    store = dist.HashStore()
    for start in range(3):
        met = meet_all(store, arrival, 3)
        assert sorted(met) == [0, 1, 2]
        for rank in met:
            assert not met[rank].check(["address"])  # gloo would connect to it
        met[0].set("address", f"of start {start}")
        assert {met[rank].get("address") for rank in met} == {f"of start {start}".encode()}


def test_a_call_that_was_never_met_is_left_for_the_next() -> None:
    """Worker 0 was killed while it waited for worker 1."""
    store = dist.HashStore()

    def killed() -> None:
        with contextlib.suppress(dist.DistStoreError):  # after five minutes, while other tests print
            meet(store, 0, 3)

    threading.Thread(target=killed, daemon=True).start()
    while not store.check(["call"]):
        time.sleep(0.01)
    assert sorted(meet_all(store, [1, 0, 2], 3)) == [0, 1, 2]


def test_a_worker_without_worker_0_says_so(monkeypatch) -> None:
    store = dist.HashStore()
    store.set("call", "of a dead worker")
    monkeypatch.setattr("latentbit.distributed.meeting.PATIENCE", 0.3)
    with pytest.raises(TimeoutError, match="worker 1 waited .* is every machine of the job up"):
        meet(store, 1, 2)
