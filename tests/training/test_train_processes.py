"""Many processes train as one would, and go on when one of them dies."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tiny_run import (
    call,
    one_thread,
    same,
    tiny_recipe,
    torchrun_command,
    weights,
    without_times,
)

from latentbit.checkpoints.checkpoint import listed
from latentbit.runs import RunDirectory

CURVE = ("epochs=2", "sync_batchnorm=true", "latent_weight=0.01", "optimizer=sgd", "lr=0.02", "log_every=1")
"""Synchronised BatchNorm, so that order, crops, losses and statistics are those of the joint batch."""


def curve(folder: Path, out: str, processes: int = 1, kill: str = "-1:0") -> list[float]:
    """The loss of every step of a run in folder/out, meant over its processes; a repeated step counts once."""
    tiny_recipe(folder)
    worker = [str(Path(__file__).parents[1] / "curve_worker.py"), "tiny.toml", out, *CURVE]
    every_step = ["checkpoint_minutes=1e-6"] if processes > 1 else []
    launch = ["--standalone", "--max-restarts", "1", "--monitor-interval", "0.1", "--nproc-per-node"]
    command = torchrun_command(*launch, str(processes)) if processes > 1 else [sys.executable]
    done = call([*command, *worker, *every_step], folder, environment={"CURVE_KILL": kill})
    assert done.returncode == 0, done.stderr
    if processes > 1:
        assert len(re.findall("epochs of 11 steps", done.stdout)) == (1 if kill == "-1:0" else 2)
    found = [(folder / f"{out}-curve{rank}.jsonl").read_text().splitlines() for rank in range(processes)]
    each = [dict(json.loads(line) for line in lines) for lines in found]
    assert all(list(own) == list(range(1, 23)) for own in each)
    return [sum(own[step] for own in each) / processes for step in range(1, 23)]


def compare_with_one_process(folder: Path, processes: int, kill: str = "-1:0") -> list[float]:
    """A larger lr would not do: after some steps rounding flips a sign, and from there on the curves differ."""
    one, many = curve(folder, "one"), curve(folder, "many", processes, kill)
    assert many == pytest.approx(one, rel=2e-4) and many[-1] < many[0]
    mine, theirs = weights(folder / "one"), weights(folder / "many")
    # Without the statistics of the joint batch they are 0.1 apart.
    for name, value in mine.items():
        torch.testing.assert_close(
            theirs[name], value, rtol=1e-5, atol=1e-3, msg=lambda m, n=name: f"{n}: {m}"
        )
    alone, together = without_times(folder / "one"), without_times(folder / "many")
    assert [entry["epoch"] for entry in together] == [1, 2]
    assert together[-1]["accuracy_b"] == alone[-1]["accuracy_b"]  # no test image dropped or doubled
    assert together[-1]["loss"] == pytest.approx(alone[-1]["loss"], rel=1e-4)
    return many


def test_a_command_that_hangs_is_named_and_takes_its_workers_along(tmp_path) -> None:
    """One that is left keeps the output open, and whoever reads it waits for ever."""
    script = "setsid sh -c 'echo $$ > worker; echo begun; exec sleep 1000' & wait"
    with pytest.raises(AssertionError, match="had not ended after 3 s. It printed:\nbegun"):
        call(["bash", "-c", script], tmp_path, timeout=3)
    worker = (tmp_path / "worker").read_text().strip()
    deadline = time.monotonic() + 10  # a killed process closes its output before it is gone
    while (alive := _runs(worker)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive


def _runs(pid: str) -> bool:
    """Neither gone nor a zombie."""
    state = subprocess.run(["ps", "-o", "state=", "-p", pid], capture_output=True, text=True).stdout.strip()
    return state not in ("", "Z")


def test_two_processes_have_the_loss_curve_of_one_though_one_of_them_dies(tmp_path) -> None:
    compare_with_one_process(tmp_path, 2, kill="1:5")


@pytest.mark.slow
def test_four_processes_have_the_loss_curve_of_one_and_a_death_does_not_change_it(tmp_path) -> None:
    many = compare_with_one_process(tmp_path, 4)
    # Not bit for bit: gloo adds up four numbers in an order of its own. Two have only one sum.
    assert curve(tmp_path, "killed", 4, kill="3:13") == pytest.approx(many, rel=1e-5)


@pytest.mark.slow
def test_a_death_changes_no_bit_of_the_loss_curve_of_two(tmp_path) -> None:
    assert curve(tmp_path, "killed", 2, kill="0:13") == curve(tmp_path, "many", 2)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "many"))


def test_processes_train_both_stages_of_a_method_whose_parameters_the_first_has_no_use_for(tmp_path) -> None:
    tiny_recipe(tmp_path)
    launcher = torchrun_command(
        "--standalone", "--nproc-per-node", "2", "-m", "latentbit", "train", "tiny.toml"
    )
    options = ("epochs=1", "latent=none", "method=xnor_pp", "first.real_weights=true")
    done = call([*launcher, *options, "--out", "run"], tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = (weights(tmp_path / run) for run in ("run/first", "run"))
    fresh = [name for name in first if name.endswith("gamma")]
    assert fresh and all((first[name] == 1).all() and (second[name] != 1).any() for name in fresh)


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


@pytest.mark.slow
@pytest.mark.parametrize("of", [0, 1])
def test_a_worker_killed_on_one_of_two_machines_restarts_both(tmp_path, of) -> None:
    """The machines count restarts apart, so the count can not tell their workers which start they belong to."""
    with socket.create_server(("localhost", 0)) as free:
        meeting_place = f"localhost:{free.getsockname()[1]}"
    machine = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "test"]
    kill_a_worker_and_wait(tmp_path, [[*machine, "--rdzv-endpoint", meeting_place]] * 2, of)
    assert [e["epoch"] for e in RunDirectory.open(tmp_path / "run").metrics()] == list(range(1, 13))
