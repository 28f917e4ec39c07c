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


def test_uniforms_are_those_of_splitmix64() -> None:
    def by_hand(state: int, count: int) -> list[float]:
        found = []
        for _ in range(count):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = state
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
            found.append(((z ^ (z >> 31)) >> 11) / 2**53)
        return found

    draws = np.array([0, 1, 2**63 - 1, 1234567])
    assert sampling.uniforms(draws, 5).tolist() == [by_hand(int(draw), 5) for draw in draws]


def test_an_order_in_pieces_is_a_shuffle_that_keeps_windows_together() -> None:
    pieces = np.repeat(np.arange(64), 10)
    order = sampling.order_in_pieces(3, 1, pieces, 32)
    assert np.array_equal(np.sort(order), np.arange(640)), "20 batches of 32 leave nothing out"
    assert np.array_equal(order, sampling.order_in_pieces(3, 1, pieces, 32))
    for other in ((4, 1), (3, 2)):
        assert not np.array_equal(order, sampling.order_in_pieces(*other, pieces, 32))
    # 64 pieces are 4 windows of 160 images; each of 16 lanes has 40 images, a quarter of a window.
    lanes = order.reshape(20, 16, 2).transpose(1, 0, 2).reshape(16, 40)
    windows = [set(pieces[lane]) for lane in lanes]
    assert all(len(found) <= sampling.WINDOW for found in windows)
    assert all(set().union(*windows[4 * i : 4 * i + 4]).__len__() == 16 for i in range(4))


def test_an_order_of_single_images_favours_no_place() -> None:
    """Mean position of each image over many epochs: that of a uniform shuffle, within its standard error."""
    n, epochs = 64, 600
    places = np.zeros(n)
    for epoch in range(epochs):
        places[sampling.order_in_pieces(0, epoch, np.arange(n), 8)] += np.arange(n)
    error = (places / epochs - (n - 1) / 2) / np.sqrt((n**2 - 1) / 12 / epochs)
    assert np.abs(error).max() < 4.5
