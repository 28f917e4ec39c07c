"""Two gloo processes on halves of a batch against one process on the whole batch."""

import tempfile
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from distributed_worker import (
    LATENT,
    gradients,
    make_objective,
    statistics,
    weights_after_a_step,
    work,
)
from test_methods import digits

from latentbit.distributed import (
    gather_over_processes,
    rank,
    restarted,
    sum_over_processes,
    world_size,
)
from latentbit.training.parallel import exchanged_bytes


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


def test_a_step_in_parts_on_two_processes_is_the_step_on_the_whole_batch(results) -> None:
    images, labels = digits()
    whole = weights_after_a_step(1, images[:32], labels[:32])
    for process in results:
        for name, expected in whole.items():
            found = process["accumulated"][name]
            torch.testing.assert_close(
                found, expected, rtol=1e-4, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}"
            )


def test_bf16_does_not_reach_the_statistics_of_synchronised_batchnorm(results) -> None:
    """Sums of 2,048 values near 40, and their count, are not numbers of 8 bits."""
    images, _ = digits()
    expected = torch.nn.BatchNorm2d(1)((images[:32] + 40).bfloat16().float())
    found = torch.cat([process["bf16"] for process in results])
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=1e-2)


def test_gradients_and_sums_are_exchanged_and_nothing_else(results) -> None:
    objective = make_objective("label_aware")
    for process in results:
        gradients, rest = process["exchanged"]
        assert gradients == sum(p.nbytes for p in objective.parameters())
        # Of the losses: sums of both views for ten classes, there and back, and the loss itself.
        channels = [8, 8, 16, 32]
        norms = sum(
            2 * (c + 1 + c) + (c + 1 + c) for c in channels
        )  # binary view there and back, latent view there
        assert rest == 4 * (2 * 10 * (2 * 8 + 1) + 2 + norms)
        assert exchanged_bytes(objective, 16, synced=True) == (gradients, rest)


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
