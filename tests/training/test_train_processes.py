"""Many processes train as one would, and go on when one of them dies."""

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
import torch
from tiny_run import (
    call,
    one_thread,
    tiny_recipe,
    torchrun_command,
    weights,
    without_times,
)

from latentbit.checkpoints.checkpoint import listed
from latentbit.runs import RunDirectory
from latentbit.training.train import train


def test_two_processes_end_where_one_with_the_joint_batch_does(tmp_path) -> None:
    """20 steps over gloo with synchronised BatchNorm: order, crops, losses and statistics of the joint batch."""
    changes = ("epochs=2", "sync_batchnorm=true", "latent_weight=0.01", "optimizer=sgd", "lr=0.02")
    train(tiny_recipe(tmp_path, *changes), out=tmp_path / "one", quiet=True)
    launcher = torchrun_command(
        "--standalone", "--nproc-per-node", "2", "-m", "latentbit", "train", "tiny.toml"
    )
    done = call([*launcher, *changes, "--out", "two"], tmp_path)
    assert done.returncode == 0, done.stderr
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    # Rounding may flip a sign now and then; without the statistics of the joint batch they are 0.1 apart.
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-5, atol=1e-3, msg=lambda m, n=name: f"{n}: {m}")
    mine, theirs = without_times(tmp_path / "one")[-1], without_times(tmp_path / "two")[-1]
    assert theirs["accuracy_b"] == mine["accuracy_b"]  # no test image dropped or doubled
    assert theirs["loss"] == pytest.approx(mine["loss"], rel=1e-4)


def test_processes_train_the_first_of_two_stages_of_a_method_with_parameters_of_its_own(tmp_path) -> None:
    tiny_recipe(tmp_path)
    launcher = torchrun_command(
        "--standalone", "--nproc-per-node", "2", "-m", "latentbit", "train", "tiny.toml"
    )
    options = ("epochs=1", "latent=none", "method=xnor_pp", "real_weights=true")
    done = call([*launcher, *options, "--out", "run"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(RunDirectory.open(tmp_path / "run").metrics()) == 1


def kill_a_worker_and_wait(folder: Path, machines: list[list[str]], of: int) -> str:
    """Start one torchrun per machine, kill a worker of one after two checkpoints; what the first machine printed."""
    tiny_recipe(folder)
    train_tiny = ["-m", "latentbit", "train", "tiny.toml", "epochs=12", "--out", "run"]
    logs = [folder / f"log{k}" for k in range(len(machines))]
    processes = [
        subprocess.Popen(
            torchrun_command("--max-restarts", "2", "--monitor-interval", "0.1", *options, *train_tiny),
            cwd=folder,
            env=one_thread(),
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
        )
        for options, log in zip(machines, logs, strict=True)
    ]
    try:
        deadline = time.monotonic() + 120
        while len(listed(folder / "run" / "checkpoints")) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        children = ["pgrep", "-P", str(processes[of].pid)]
        worker = subprocess.run(children, capture_output=True, text=True).stdout.split()[-1]
        subprocess.run(["kill", "-KILL", worker], check=True)
        for process, log in zip(processes, logs, strict=True):
            assert process.wait(timeout=200) == 0, log.read_text()
    finally:
        for process in processes:
            process.terminate()
    return logs[0].read_text()


def test_a_killed_worker_is_restarted_and_every_epoch_logged_once(tmp_path) -> None:
    log = kill_a_worker_and_wait(tmp_path, [["--standalone", "--nproc-per-node", "2"]], of=0)
    assert [e["epoch"] for e in RunDirectory.open(tmp_path / "run").metrics()] == list(range(1, 13))
    assert len(re.findall("epochs of 11 steps", log)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("of", [0, 1])
def test_a_worker_killed_on_one_of_two_machines_restarts_both(tmp_path, of) -> None:
    """The machines count restarts apart, so the count can not tell their workers which start they belong to."""
    with socket.create_server(("localhost", 0)) as free:
        meeting_place = f"localhost:{free.getsockname()[1]}"
    machine = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "test"]
    kill_a_worker_and_wait(tmp_path, [[*machine, "--rdzv-endpoint", meeting_place]] * 2, of)
    assert [e["epoch"] for e in RunDirectory.open(tmp_path / "run").metrics()] == list(range(1, 13))
