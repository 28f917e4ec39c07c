from pathlib import Path

import pytest
import tiny_runs
import torch

from latentbit.analyze.trained import evenly_spaced, open_run
from latentbit.runs import RunDirectory, RunError


@pytest.mark.parametrize(("total", "n"), [(360, 100), (360, 360), (360, 1000), (7, 3), (128, 1)])
def test_spread_takes_n_images_at_even_distances(total: int, n: int) -> None:
    labels = torch.arange(total)
    batches = [(part[:, None], part) for part in labels.split(50)]
    taken = torch.cat([batch for _, batch in evenly_spaced(batches, total, n)])
    assert len(taken) == min(n, total)
    gaps = taken.diff()
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_both_views_are_open_and_the_latent_one_is_recalibrated() -> None:
    trained = open_run(tiny_runs.baseline(), device="cpu")
    assert trained.views is not None and not trained.views.training
    binary = dict(trained.views.binary.named_buffers())
    latent = dict(trained.views.latent.named_buffers())
    different = [
        name for name in latent if "running_mean" in name and not torch.equal(latent[name], binary[name])
    ]
    assert (
        len(different) >= 8
    )  # a BatchNorm in front of and behind each convolution, but the stem's input is shared
    images = sum(len(labels) for _, labels in trained.sample(50))
    assert images == 50


def test_a_float_run_has_one_view() -> None:
    assert open_run(tiny_runs.float_run(), device="cpu").views is None


def test_a_run_without_weights_says_what_to_do(tmp_path: Path) -> None:
    run = RunDirectory.create(tiny_runs.recipe(), tmp_path / "run")
    with pytest.raises(RunError, match="--resume"):
        open_run(run.path)
    with pytest.raises(RunError, match="'worst'"):
        open_run(run.path, "worst")
