"""sampling: a pure function of (seed, epoch, image), shared out without loss or double."""

import numpy as np
import pytest

from latentbit.data import sampling
from latentbit.data.sampling import BatchError, Epoch


def test_epoch_is_a_permutation_and_pure() -> None:
    one, again = Epoch.of(3, 5, 1000), Epoch.of(3, 5, 1000)
    assert np.array_equal(np.sort(one.order), np.arange(1000))
    assert np.array_equal(one.order, again.order) and np.array_equal(one.draws, again.draws)


@pytest.mark.parametrize("other", [(3, 6), (4, 5), (5, 3), (3 + 2**32, 5)])
def test_seed_and_epoch_both_count(other: tuple[int, int]) -> None:
    one, two = Epoch.of(3, 5, 1000), Epoch.of(*other, 1000)
    assert np.mean(one.order == two.order) < 0.02 and not np.any(one.draws == two.draws)


def test_philox_stream_is_pinned() -> None:
    """The first draws of (0, 0): were they to change, no old run could be repeated."""
    assert sampling._raw(0, 0, 0, 2).tolist() == [129745503399974868, 2377483205311176162]
    assert sampling.fixed_order(8).tolist() == [0, 3, 7, 5, 1, 2, 6, 4]


def test_draws_are_even() -> None:
    draws = Epoch.of(0, 0, 50000).draws
    for column in (0, 1):
        counts = np.bincount(draws[:, column] % 5, minlength=5)
        # five standard deviations of a binomial count
        assert np.abs(counts - 10000).max() < 5 * np.sqrt(50000 * 0.2 * 0.8)


@pytest.mark.parametrize("world", [1, 2, 3, 4, 6])
def test_ranks_together_see_the_global_batches(world: int) -> None:
    order = Epoch.of(1, 2, 100).order
    parts = [list(sampling.train_indices(order, 12, rank, world, 0)) for rank in range(world)]
    joint = [np.concatenate(step) for step in zip(*parts, strict=True)]
    assert len(joint) == 100 // 12
    assert np.array_equal(np.concatenate(joint), order[:96])


def test_start_step_resumes() -> None:
    order = Epoch.of(1, 2, 100).order
    whole = list(sampling.train_indices(order, 10, 1, 2, 0))
    rest = list(sampling.train_indices(order, 10, 1, 2, 4))
    assert np.array_equal(np.concatenate(whole[4:]), np.concatenate(rest))


@pytest.mark.parametrize("n", [0, 1, 7, 24, 25])
@pytest.mark.parametrize("world", [1, 2, 5])
def test_evaluation_drops_and_doubles_nothing(n: int, world: int) -> None:
    seen = [
        index
        for rank in range(world)
        for batch in sampling.eval_indices(np.arange(n), 6, rank, world)
        for index in batch.tolist()
    ]
    assert sorted(seen) == list(range(n))


def test_impossible_batches() -> None:
    with pytest.raises(BatchError, match="cannot be divided by 3 processes: use 9 or 12"):
        next(sampling.train_indices(np.arange(100), 10, 0, 3, 0))
    with pytest.raises(BatchError, match="larger than the training set of 5"):
        sampling.steps(5, 10)


def test_what_is_held_out_is_the_same_share_of_every_class_and_follows_the_seed() -> None:
    labels = np.repeat([0, 1, 2], [100, 50, 2])
    chosen = sampling.held_out(labels, 0.1, seed=0)
    assert np.bincount(labels[chosen]).tolist() == [10, 5, 1]
    assert np.array_equal(chosen, sampling.held_out(labels, 0.1, seed=0))
    assert not np.array_equal(chosen, sampling.held_out(labels, 0.1, seed=1))
