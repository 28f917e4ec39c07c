"""Runs small enough for tests: a few channels on the embedded digits, 11 steps an epoch."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from latentbit import recipes
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory

TINY = """
[data]
dataset = "digits"
pad = 1
[model]
network = "resnet18_compact"
options = {widths = [8, 16], norm = "both"}
[loss]
latent = "label_aware"
dim = 8
[optim]
epochs = 3
[run]
compile = "off"
device = "cpu"
recalibrate_batches = 2
"""


def tiny_recipe(folder: Path, *overrides: str) -> Recipe:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.toml").write_text(TINY)
    return recipes.load(str(folder / "tiny.toml"), overrides)


def weights(run: Path, which: str = "last") -> dict[str, torch.Tensor]:
    return load_file(run / f"{which}.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def latentbit_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "latentbit", *arguments]


def torchrun_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *arguments]


def one_thread() -> dict[str, str]:
    """The environment of a child: weights are the same bit for bit only for the same number of threads."""
    return os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def call(
    command: list[str], cwd: Path, timeout: float = 300, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command printed. Out of time, it ends with all that it started, which would keep its output open."""
    around = one_thread() | (environment or {})
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=around,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        printed, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as slow:
        for pid in _with_children(process.pid):
            with contextlib.suppress(ProcessLookupError):  # some may end with those before them
                os.kill(pid, signal.SIGKILL)
        printed, errors = process.communicate()
        raise AssertionError(
            f"{command} had not ended after {timeout} s. It printed:\n{printed}\n{errors}"
        ) from slow
    return subprocess.CompletedProcess(command, process.returncode, printed, errors)


def _with_children(pid: int) -> list[int]:
    """And theirs: torchrun gives each worker a session of its own, so no signal to a group reaches them."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [pid, *(each for child in found for each in _with_children(int(child)))]


TIMES = ("seconds", "images_per_second")


def without_times(run: Path) -> list[dict]:
    return [{k: v for k, v in e.items() if k not in TIMES} for e in RunDirectory.open(run).metrics()]
