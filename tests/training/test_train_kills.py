"""Killed or interrupted at any moment, a run loses nothing."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tiny_run import (
    latentbit_command,
    one_thread,
    same,
    tiny_recipe,
    weights,
    without_times,
)

from latentbit.checkpoints.checkpoint import listed
from latentbit.training.train import train


def kill_and_resume(folder: Path, kills: int, epochs: int) -> tuple[Path, int]:
    """Start the command line, SIGKILL it at random moments, resume; gives the run and the number of kills."""
    tiny_recipe(folder)
    chance, run, killed = random.Random(kills), folder / "killed", 0
    overrides = [f"epochs={epochs}", "eval_every=5", "checkpoint_minutes=0.0005"]
    while True:
        started = (run / "recipe.toml").is_file()
        arguments = ["--resume", str(run)] if started else ["tiny.toml", *overrides, "--out", str(run)]
        process = subprocess.Popen(
            latentbit_command("train", *arguments),
            cwd=folder,
            env=one_thread(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if killed < kills:
            # Most often during steps, evaluations and saves; now and then while it starts or restores.
            before = listed(run / "checkpoints")[:1]
            while killed % 4 != 3 and process.poll() is None and listed(run / "checkpoints")[:1] == before:
                time.sleep(0.01)
            try:
                process.wait(chance.uniform(0.0, 1.0))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
        _, errors = process.communicate()
        if process.returncode == 0:
            return run, killed
        assert process.returncode == -signal.SIGKILL, errors.decode()


@pytest.mark.parametrize("kills, epochs", [(3, 12), pytest.param(20, 60, marks=pytest.mark.slow)])
def test_sigkill_at_random_moments_changes_nothing(tmp_path, kills, epochs) -> None:
    whole = tmp_path / "whole"
    train(tiny_recipe(tmp_path, f"epochs={epochs}", "eval_every=5"), out=whole, quiet=True)
    run, killed = kill_and_resume(tmp_path, kills, epochs)
    assert killed == kills
    assert same(weights(run), weights(whole))
    assert without_times(run) == without_times(whole)
    # A kill may leave a temporary file, which the next resume removes, and never half a file under a name.
    assert list(run.rglob("*.tmp")) == []
    files = list(run.rglob("*.safetensors"))
    assert {"best.safetensors", "last.safetensors"} <= {file.name for file in files}
    for file in files:
        assert load_file(file)


def test_sigint_saves_and_says_how_to_go_on(tmp_path) -> None:
    tiny_recipe(tmp_path)
    command = latentbit_command("train", "tiny.toml", "epochs=200", "--out", "run")
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1/"):
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130  # so that `train && pack` stops
    assert "stopped by SIGINT; to continue: latentbit train --resume run" in rest
    assert listed(tmp_path / "run" / "checkpoints")
