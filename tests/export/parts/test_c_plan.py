"""Values that are alive at the same time never share memory, and additions cost none."""

import itertools

import numpy as np
import pytest
from lbit_networks import PLAIN, block_network, compact_network, random_network

from latentbit.export.c import C, _real_words
from latentbit.export.parts.c_plan import Plan, Value, live_words, n_words, place
from latentbit.lbit import Network


def planned(network: Network) -> tuple[Plan, int]:
    target = C(network)
    target.plan, target._image_map = Plan(network), None
    target.walk(Value(network.input_shape))
    return target.plan, place(target.plan, _real_words)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_live_values_overlap(seed: int) -> None:
    plan, words = planned(random_network(seed, PLAIN))
    storages = {
        id(s): s for step in plan.steps for s in (step.real, step.bits, step.scratch) if s is not None
    }
    for a, b in itertools.combinations(storages.values(), 2):
        together = a.first <= b.last and b.first <= a.last
        assert not together or a.at + a.words <= b.at or b.at + b.words <= a.at, (a, b)
    assert words == max(s.at + s.words for s in storages.values())
    assert words >= max(live_words(plan, i) for i in range(len(plan.steps)))


@pytest.mark.parametrize("seed", range(20))
def test_steps_read_only_what_earlier_steps_made(seed: int) -> None:
    plan, _ = planned(random_network(seed, PLAIN))
    place_of = {id(step): i for i, step in enumerate(plan.steps)}
    for i, step in enumerate(plan.steps):
        assert all(place_of[id(value.step)] < i for value in step.sources if value.step is not None)


def test_a_residual_block_is_one_step_in_place() -> None:
    plan, words = planned(compact_network(widths=(16,), blocks=4))
    assert [step.run for step in plan.steps] == ["conv", *["binary_conv"] * 4, "avg_pool", "conv"]
    assert len({id(step.real) for step in plan.steps[:5]}) == 1
    bits, row, channels = 64 * n_words(16), n_words(9 * 16), 16
    assert words == 64 * channels + 2 * bits + 2 * row + 2 * channels


def test_a_doubled_shortcut_is_never_built() -> None:
    plan, _ = planned(block_network())
    assert "concat" not in [step.run for step in plan.steps]
    residual = next(step.residual for step in plan.steps if step.residual is not None)
    assert residual.repeats == 2 and np.prod(residual.shape) == 32 * 16


def test_a_pool_writes_over_a_map_that_nobody_reads_afterwards() -> None:
    plan, words = planned(compact_network((16, 16), side=16))
    first, pool = plan.steps[0], next(step for step in plan.steps if step.run == "max_pool")
    assert pool.real is first.real and first.real is not None
    bits, row = 256 * n_words(16), n_words(9 * 16)
    assert words == 256 * 16 + 2 * bits + 2 * row + 2 * 16  # no more than in the first stage
