import pytest
import torch

from latentbit.runs.checkpoint import Position
from latentbit.training.evaluate import Score, Scores
from latentbit.training.metrics import add_step, epoch_entry, score_entry


def test_an_epoch_is_the_mean_over_its_images() -> None:
    position = Position()
    add_step(position.sums, {"loss": 2.0, "task": 1.0}, correct=3, n=4, seconds=0.5)
    add_step(position.sums, {"loss": 5.0, "task": 4.0}, correct=1, n=2, seconds=0.5)
    entry = epoch_entry(6, position, 11, 0.01, 1, torch.device("cpu"))
    assert entry == {
        "epoch": 7,
        "steps": 77,
        "lr": 0.01,
        "loss": pytest.approx((2 * 4 + 5 * 2) / 6),
        "task": pytest.approx((1 * 4 + 4 * 2) / 6),
        "train_accuracy": pytest.approx(4 / 6),
        "seconds": 1.0,
        "images_per_second": 6.0,
    }


def test_views_that_were_not_scored_are_left_out() -> None:
    assert score_entry(Scores(Score(3, 4), None, None)) == {"accuracy_b": 0.75}
