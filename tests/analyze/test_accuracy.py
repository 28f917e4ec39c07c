import pytest
import tiny_runs

from latentbit.analyze.accuracy import accuracies, as_numbers
from latentbit.analyze.trained import open_run
from latentbit.training.evaluate import scores


def test_agrees_with_evaluate_and_the_log_of_the_training() -> None:
    trained = open_run(tiny_runs.baseline(), "last", device="cpu")
    found = accuracies(trained)
    assert found == scores(trained.model, trained.dataset, batch_size=64)
    logged = trained.directory.metrics()[-1]
    numbers = as_numbers(found)
    assert numbers["B"]["accuracy"] == logged["accuracy_b"]
    assert numbers["W"]["accuracy"] == logged["accuracy_w"]
    assert numbers["W_dagger"]["accuracy"] == pytest.approx(logged["accuracy_w_dagger"], abs=0.02)
    low, high = numbers["B"]["interval"]
    assert low < numbers["B"]["accuracy"] < high


def test_recalibration_restores_the_latent_weights() -> None:
    """Paper, Table 1: W in the statistics of B is far below B, with its own close to it."""
    numbers = as_numbers(accuracies(open_run(tiny_runs.baseline(), "last", device="cpu")))
    binary, stale, latent = (numbers[key]["accuracy"] for key in ("B", "W", "W_dagger"))
    assert latent > stale + 0.1
    assert latent > binary - 0.1


def test_a_float_network_has_one_accuracy() -> None:
    assert list(as_numbers(accuracies(open_run(tiny_runs.float_run(), device="cpu")))) == ["B"]
