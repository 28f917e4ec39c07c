import math

import pytest

from latentbit.training.schedule import learning_rate


def test_cosine_goes_from_peak_to_zero() -> None:
    assert learning_rate(0, 100, 0.1) == 0.1
    assert learning_rate(50, 100, 0.1) == pytest.approx(0.05)
    assert learning_rate(25, 100, 0.1) == pytest.approx(0.05 * (1 + math.cos(math.pi / 4)))
    assert learning_rate(100, 100, 0.1) == pytest.approx(0.0)


def test_linear_and_constant() -> None:
    assert learning_rate(25, 100, 1.0, kind="linear") == 0.75
    assert learning_rate(99, 100, 1.0, kind="constant") == 1.0


def test_warm_up_rises_evenly_to_the_peak() -> None:
    rates = [learning_rate(step, 20, 1.0, warmup=4) for step in range(6)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0]) and rates[5] < 1.0
