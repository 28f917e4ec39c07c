"""A training on shards that is killed in the middle of an epoch, by one process and by two."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from data import jpeg_files
from tiny_run import call, one_thread, same, tiny_recipe, torchrun_command, weights, without_times

from latentbit.checkpoints.checkpoint import listed
from latentbit.data import shard_writing


def step_reached(run: Path) -> tuple[int, int]:
    """Epoch and step of the newest checkpoint."""
    found = listed(run / "checkpoints")
    epoch, step = found[0].stem.split("-") if found else (0, 0)
    return int(epoch), int(step)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_weights(
    tmp_path: Path, processes: int
) -> None:
    source = jpeg_files.folder(tmp_path / "images", {"train": 48, "val": 2})
    shard_writing.write(source, tmp_path / "shards", 40_000)
    tiny_recipe(tmp_path)
    launcher = torchrun_command(
        "--standalone", "--nproc-per-node", str(processes), "-m", "latentbit", "train"
    )
    options = ["dataset=shards", f"root={tmp_path / 'shards'}", "image_size=16", "resize=20", "batch_size=16"]
    options += ["crop=random_resized", "flip=true", "brightness=0.4", "lighting=0.1", "workers=1", "epochs=2"]
    whole = call([*launcher, "tiny.toml", *options, "--out", "whole"], tmp_path)
    assert whole.returncode == 0, whole.stderr
    often = [*options, "checkpoint_minutes=0.00001"]
    process = subprocess.Popen(
        [*launcher, "tiny.toml", *often, "--out", "run"],
        cwd=tmp_path,
        env=one_thread(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and not (step_reached(tmp_path / "run") > (0, 1)):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    epoch, step = step_reached(tmp_path / "run")
    assert epoch in (0, 1) and 0 < step < 6, "in the middle"
    done = call([*launcher, "--resume", "run"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    assert without_times(tmp_path / "run") == without_times(tmp_path / "whole")
    assert json.loads((tmp_path / "run" / "data.json").read_text())["name"] == "shards"
