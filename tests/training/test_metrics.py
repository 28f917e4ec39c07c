import math

import pytest
import torch

from latentbit.objective import Outcome
from latentbit.score import Score
from latentbit.training.evaluate import Scores
from latentbit.training.metrics import Meter, epoch_entry, score_entry

CPU = torch.device("cpu")


def outcome(loss: float, task: float, right: int, n: int) -> tuple[Outcome, torch.Tensor]:
    """A forward over n images of which `right` are classified correctly."""
    labels = torch.zeros(n, dtype=torch.int64)
    logits = torch.zeros(n, 2)
    logits[right:, 1] = 1.0
    return Outcome(torch.tensor(loss), {"task": torch.tensor(task)}, logits, None), labels


def test_an_epoch_is_the_mean_over_its_images() -> None:
    meter = Meter(CPU)
    meter.add(*outcome(2.0, 1.0, right=3, n=4), step=0)
    meter.add(*outcome(5.0, 4.0, right=1, n=2), step=1)
    assert meter.read_latest() == {"loss": 5.0, "task": 4.0}
    assert meter.read() == {"loss": 18.0, "task": 12.0, "correct": 4.0, "images": 6.0}
    assert epoch_entry(6, meter.read(), 1.0, 11, 0.01, CPU) == {
        "epoch": 7,
        "steps": 77,
        "lr": 0.01,
        "loss": pytest.approx((2 * 4 + 5 * 2) / 6),
        "task": pytest.approx((1 * 4 + 4 * 2) / 6),
        "train_accuracy": pytest.approx(4 / 6),
        "seconds": 1.0,
        "images_per_second": 6.0,
    }


def test_sums_read_and_restored_go_on_bit_for_bit() -> None:
    steps = [outcome(*torch.rand(2).tolist(), right=1, n=3) for _ in range(9)]
    whole, first, second = Meter(CPU), Meter(CPU), Meter(CPU)
    for step, one in enumerate(steps):
        whole.add(*one, step=step)
        first.add(*one, step=step) if step < 4 else None
    second.restore(first.read())
    for step, one in enumerate(steps[4:], 4):
        second.add(*one, step=step)
    assert second.read() == whole.read()


def test_the_first_loss_that_is_not_finite_is_remembered() -> None:
    meter = Meter(CPU)
    for step, loss in enumerate((1.0, math.inf, math.nan, 2.0)):
        meter.add(*outcome(loss, 0.5 + step, right=1, n=2), step=step)
        assert (meter.read_first_bad() is None) == (step == 0)
    assert meter.read_first_bad() == (1, {"loss": math.inf, "task": 1.5})


def test_views_that_were_not_scored_are_left_out() -> None:
    assert score_entry(Scores(Score(3, 4), None, None)) == {"accuracy_b": 0.75}
