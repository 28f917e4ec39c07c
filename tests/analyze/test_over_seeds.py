"""The interval of a mean over seeds."""

import numpy as np
import pytest
from scipy import stats

from latentbit.analyze.over_seeds import T_QUANTILES, Mean


def test_the_quantiles_are_students() -> None:
    np.testing.assert_allclose(T_QUANTILES, stats.t.ppf(0.975, np.arange(1, 31)), atol=1e-6)


@pytest.mark.parametrize("values", [[0.90, 0.92], [0.90, 0.92, 0.97, 0.91]])
def test_the_interval_is_students(values: list[float]) -> None:
    mean = Mean.of(values)
    assert mean.half is not None
    expected = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    np.testing.assert_allclose((mean.value - mean.half, mean.value + mean.half), expected, rtol=1e-5)


def test_one_seed_has_no_interval() -> None:
    assert Mean.of([0.5]) == Mean(0.5, None)
