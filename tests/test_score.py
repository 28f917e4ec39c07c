import pytest

from latentbit.score import Score


def test_interval_is_wilsons() -> None:
    low, high = Score(40, 360).interval()
    assert (low, high) == (pytest.approx(0.0827, abs=1e-4), pytest.approx(0.1478, abs=1e-4))
    assert Score(0, 10).interval()[0] == 0.0 and Score(10, 10).interval()[1] == 1.0
    assert str(Score(40, 360)) == "11.11 % (40/360, 95 % CI 8.27-14.78)"
