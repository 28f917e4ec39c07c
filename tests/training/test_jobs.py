"""Several trainings at once: all finish, one that fails does not stop the others, signals stop them all."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tiny_run import latentbit_command, one_thread, same, tiny_recipe, weights

from latentbit import runs
from latentbit.runs import RunDirectory
from latentbit.training.jobs import Job, train_all


def test_side_by_side_they_end_with_the_weights_of_one_after_the_other(tmp_path, capfd) -> None:
    small = ("epochs=1", "latent=none", "options.widths=[4, 4]")
    chosen = {f"seed {seed}": tiny_recipe(tmp_path, *small, f"seed={seed}") for seed in range(2)}
    chosen["bad"] = tiny_recipe(tmp_path, *small, "batch_size=5000")
    jobs = [Job(name, runs.place(recipe, at=tmp_path / "jobs" / name)) for name, recipe in chosen.items()]
    found = train_all(jobs, 2)
    assert list(found) == ["seed 0", "seed 1", "bad"]
    assert "batch_size = 5000 is larger than the training set" in str(found["bad"])
    printed = capfd.readouterr().out
    assert "seed 1: epoch 1/1  loss" in printed and "bad: failed:" in printed
    for seed in range(2):
        run = found[f"seed {seed}"]
        assert isinstance(run, RunDirectory) and run.finished and run.environment()["threads"] == 1
        done = subprocess.run(
            latentbit_command("train", "tiny.toml", *small, f"seed={seed}", "--out", f"alone{seed}"),
            cwd=tmp_path,
            env=one_thread(),
            capture_output=True,
        )
        assert done.returncode == 0
        assert same(weights(run.path), weights(tmp_path / f"alone{seed}"))
    again = [Job(job.name, runs.place(chosen[job.name], at=job.place.path)) for job in jobs[:2]]
    assert all(job.place.finished for job in again)
    assert isinstance(train_all(again, 2, quiet=True)["seed 0"], RunDirectory)


def comparing(folder: Path, epochs: int) -> subprocess.Popen[str]:
    """Two contenders side by side through the command line, in a session of their own."""
    tiny_recipe(folder)
    chosen = ("--methods", "sign,bnn", "--recipe", "tiny.toml", "--jobs", "2", "--out", "out")
    return subprocess.Popen(
        latentbit_command("compare", *chosen, f"epochs={epochs}"),
        cwd=folder,
        env=one_thread(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_killed_job_is_reported_and_the_other_finishes(tmp_path) -> None:
    process = comparing(tmp_path, epochs=30)
    who = tmp_path / "out" / "bnn" / "seed0" / ".running.json"
    deadline = time.monotonic() + 120
    while not who.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(who.read_text().partition('"pid": ')[2].partition(",")[0])
    os.kill(pid, signal.SIGKILL)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert "bnn seed 0: failed: its process ended with exit code -9" in printed
    assert runs.open(tmp_path / "out" / "sign" / "seed0").finished


@pytest.mark.parametrize(
    "how", ["ctrl-c", *(pytest.param(how, marks=pytest.mark.slow) for how in ("sigterm", "killed"))]
)
def test_a_signal_stops_every_job_and_the_same_command_continues(tmp_path, how: str) -> None:
    process = comparing(tmp_path, epochs=4000)
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if "sign seed 0: epoch 1/" in seen and "bnn seed 0: epoch 1/" in seen:
            break
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:  # as a service does, or the kernel when memory runs out: this process alone
        os.kill(process.pid, signal.SIGTERM if how == "sigterm" else signal.SIGKILL)
    rest, _ = process.communicate(timeout=120)  # ends when the last process has closed its output
    assert "Traceback" not in rest
    if how != "killed":
        assert process.returncode == 130 and "stopped; the same command continues" in rest, rest
    for name in ("sign", "bnn"):
        run = runs.open(tmp_path / "out" / name / "seed0")
        assert list(run.checkpoints.glob("*.safetensors")) and not run.finished


def test_one_at_a_time_stops_at_the_first_signal(tmp_path, monkeypatch) -> None:
    from latentbit.training.interrupt import Interrupt

    recipes = [tiny_recipe(tmp_path, f"seed={seed}") for seed in range(2)]
    monkeypatch.setattr(Interrupt, "wanted", lambda self, device: True)
    jobs = [Job(str(k), runs.place(one, at=tmp_path / str(k))) for k, one in enumerate(recipes)]
    assert train_all(jobs, quiet=True) == {"0": None, "1": None}
    assert (tmp_path / "0").is_dir() and not (tmp_path / "1").exists()
