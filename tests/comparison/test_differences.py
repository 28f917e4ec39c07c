import numpy as np
import pytest
from scipy import stats

from latentbit.comparison.differences import paired


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_the_interval_is_that_of_a_paired_t_test(n: int) -> None:
    rng = np.random.default_rng(n)
    ours, theirs = rng.normal(0.6, 0.02, n), rng.normal(0.59, 0.02, n)
    found = paired(ours, theirs)
    interval = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert found is not None
    np.testing.assert_allclose((found.mean - found.half, found.mean + found.half), interval, rtol=1e-5)


def test_a_difference_is_shown_when_its_interval_leaves_out_0() -> None:
    clear, unclear = paired((0.62, 0.63, 0.64), (0.60, 0.61, 0.62)), paired((0.62, 0.58), (0.60, 0.61))
    assert clear is not None and clear.shown and str(clear) == "+2.00 (+2.00 to +2.00)"
    assert unclear is not None and not unclear.shown


def test_one_seed_has_no_interval() -> None:
    assert paired((0.6,), (0.5, 0.4)) is None
