import numpy as np
import pytest
import tiny_runs

from latentbit.analyze.trained import open_run
from latentbit.analyze.weights import BINS, latent_weights, layer_weights


def test_shares_by_hand() -> None:
    w = np.array([0.0, 0.05, -0.2, 2.0, -1.0, 0.5, -1.5, 0.75])
    mean = np.abs(w).mean()  # 0.75: near zero is below 0.075
    found = layer_weights("x", w, limit=1.0)
    assert (found.n, found.mean_abs) == (8, pytest.approx(mean))
    assert (found.near_zero, found.beyond_one, found.positive) == (2 / 8, 2 / 8, 5 / 8)
    assert sum(found.counts) == 8 and len(found.counts) == BINS
    assert found.counts[0] == 2 and found.counts[-1] == 1  # what is beyond the limit is at the ends


def test_every_binary_layer_is_there() -> None:
    model = open_run(tiny_runs.baseline(), device="cpu").model
    limit, layers = latent_weights(model)
    assert [one.name for one in layers] == [f"stages.{s}.{b}.conv" for s in (0, 1) for b in range(4)]
    assert sum(one.n for one in layers) == 4 * 9 * 64 + 9 * 128 + 3 * 9 * 256
    assert limit > max(one.mean_abs for one in layers)
