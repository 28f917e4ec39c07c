import math

import pytest

from latentbit.training.forecast import BUCKET, Work, Workers, ring, step


def workers(n: int, **other: float) -> Workers:
    return Workers(n, **({"device": 100.0, "decoded": math.inf, "bandwidth": 1e9, "latency": 0.0} | other))


def test_one_worker_waits_for_nobody() -> None:
    found = step(Work(200, 10**9, 10**6), workers(1))
    assert (found.seconds, found.reduce, found.waited, found.bound_by) == (2.0, 0.0, 0.0, "compute")


def test_a_ring_sends_twice_the_gradients_less_one_share() -> None:
    for n in (2, 4, 256):
        assert ring(10**9, workers(n)) == pytest.approx(2 * (n - 1) / n)
    assert ring(10**9, workers(4, latency=0.1)) == pytest.approx(1.5 + 6 * 0.1)


def test_the_backward_hides_all_buckets_but_the_last() -> None:
    work = Work(400, 4 * BUCKET)
    alone = ring(work.gradients, workers(2))
    assert step(work, workers(2)).waited == pytest.approx(alone / 4)  # 2 s of compute hide the rest
    fast = step(work, workers(2, device=1e6))
    assert fast.waited == pytest.approx(alone - 2 / 3 * fast.compute) and fast.bound_by == "all-reduce"
    assert step(work, workers(2)).seconds == pytest.approx(2.0 + alone / 4)


def test_what_losses_exchange_is_waited_for() -> None:
    one, two = (step(Work(100, 0, n), workers(2)).seconds for n in (0, 10**9))
    assert two - one == pytest.approx(1.0)


def test_input_runs_ahead_and_counts_where_it_is_slower() -> None:
    work = Work(400, 0)
    assert step(work, workers(2, decoded=150.0)).seconds == 2.0
    slow = step(work, workers(2, decoded=50.0))
    assert (slow.seconds, slow.bound_by) == (4.0, "input")
