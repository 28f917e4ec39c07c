"""Two gloo processes on halves of a batch against one process on the whole batch."""

import tempfile
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from distributed_worker import LATENT, gradients, make_objective, statistics, work
from test_methods import digits

from latentbit.distributed import (
    gather_over_processes,
    rank,
    restarted,
    sum_over_processes,
    world_size,
)


@pytest.fixture(scope="module")
def results() -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (folder,), nprocs=2)
        return [torch.load(Path(folder) / f"{i}.pt", weights_only=True) for i in range(2)]


@pytest.mark.parametrize("latent", LATENT)
def test_gradients_are_those_of_the_joint_batch(results, latent) -> None:
    images, labels = digits()
    objective = make_objective(latent)
    objective(images[:32], labels[:32]).loss.backward()
    for process in results:
        mine, buffers = process[latent]
        assert mine.keys() == gradients(objective).keys()
        for name, expected in gradients(objective).items():
            torch.testing.assert_close(
                mine[name], expected, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
            )
        for name, expected in statistics(objective).items():
            torch.testing.assert_close(buffers[name], expected, rtol=1e-5, atol=1e-6)


def test_sums_and_gathers(results) -> None:
    for i, process in enumerate(results):
        assert process["sum"].tolist() == [3.0]
        assert process["gather"].tolist() == [[1.0], [2.0]]
        assert process["world"] == (i, 2)
        assert process["buffers"].tolist() == [0.0, 0.0]
        assert process["text"] == "runs/é0"


def test_a_restart_on_one_machine_is_one_for_all(results) -> None:
    assert [process["restarted"] for process in results] == [True, True]
    assert not restarted()


def test_one_process_needs_no_group() -> None:
    x = torch.randn(3)
    assert sum_over_processes(x) is x and gather_over_processes(x) is x
    assert (rank(), world_size()) == (0, 1)
