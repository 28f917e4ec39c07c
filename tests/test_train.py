"""The loop: what a run leaves, that it resumes bit for bit, that every recipe runs, that processes agree."""

import dataclasses
import json
import math
import random
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_run import call, latentbit_command, one_thread, same, tiny_recipe, torchrun_command, weights

from latentbit import recipe
from latentbit.errors import LatentbitError
from latentbit.objective import Objective
from latentbit.runs.checkpoint import listed, read_model
from latentbit.runs.directory import RunDirectory
from latentbit.train import TrainingStopped, step_seed, train
from latentbit.training.build import build_model
from latentbit.training.interrupt import Interrupt
from latentbit.views import stale_view

TIMES = ("seconds", "images_per_second")


def without_times(run: Path) -> list[dict]:
    return [{k: v for k, v in e.items() if k not in TIMES} for e in RunDirectory.open(run).metrics()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    train(tiny_recipe(folder), out=folder / "run", quiet=True)
    return folder / "run"


def test_a_run_leaves_recipe_environment_metrics_and_checkpoints(finished) -> None:
    run = RunDirectory.open(finished)
    assert run.recipe().loss.latent == "label_aware" and run.finished
    assert json.loads((finished / "environment.json").read_text())["torch"] == torch.__version__
    entries = run.metrics()
    assert [e["epoch"] for e in entries] == [1, 2, 3]
    for key in ("loss", "task", "latent", "lr", "flip_rate", "spread", "train_accuracy"):
        assert math.isfinite(entries[-1][key])
    for key in ("accuracy_b", "accuracy_w", "accuracy_w_dagger"):
        assert 0 <= entries[-1][key] <= 1
    assert entries[-1]["loss"] < entries[0]["loss"]
    assert run.best.is_file() and run.last.is_file()
    assert [p.name for p in listed(run.checkpoints)] == [
        "00003-000000.safetensors",
        "00002-000000.safetensors",
    ]


def test_the_same_seed_gives_the_same_run_and_another_does_not(finished, tmp_path) -> None:
    train(tiny_recipe(tmp_path), out=tmp_path / "again", quiet=True)
    assert same(weights(tmp_path / "again"), weights(finished))
    assert without_times(tmp_path / "again") == without_times(finished)
    train(tiny_recipe(tmp_path, "seed=1", "epochs=1"), out=tmp_path / "other", quiet=True)
    assert not same(weights(tmp_path / "other"), weights(finished))


class StopAt:
    """Stands in for a signal that arrives during step `n` of the process."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, interrupt: Interrupt, device: torch.device) -> bool:
        self.left -= 1
        interrupt.name = "SIGINT"
        return self.left <= 0


@pytest.mark.parametrize("steps", [1, 7, 11, 12, 20])
def test_stopped_anywhere_and_resumed_it_ends_with_the_same_weights(
    finished, tmp_path, monkeypatch, steps
) -> None:
    with monkeypatch.context() as patch:
        stop = StopAt(steps)
        patch.setattr(Interrupt, "wanted", lambda self, device: stop(self, device))
        assert train(tiny_recipe(tmp_path), out=tmp_path / "run", quiet=True).scores is None
    done = train(RunDirectory.open(tmp_path / "run").recipe(), resume=tmp_path / "run", quiet=True)
    assert done.scores is not None
    assert same(weights(tmp_path / "run"), weights(finished))
    assert without_times(tmp_path / "run") == without_times(finished)


def test_average_and_dropout_resume_bit_for_bit_too(tmp_path, monkeypatch) -> None:
    changes = (
        "ema=0.9",
        "clip_norm=1",
        "warmup_epochs=1",
        "epochs=2",
        "optimizer=sgd",
        "lr=0.05",
        "latent=none",
    )
    train(tiny_recipe(tmp_path, *changes), out=tmp_path / "whole", quiet=True)
    with monkeypatch.context() as patch:
        stop = StopAt(5)
        patch.setattr(Interrupt, "wanted", lambda self, device: stop(self, device))
        train(tiny_recipe(tmp_path, *changes), out=tmp_path / "run", quiet=True)
    train(RunDirectory.open(tmp_path / "run").recipe(), resume=tmp_path / "run", quiet=True)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))


def test_a_broken_checkpoint_is_named_and_the_one_before_it_taken(finished, tmp_path, capsys) -> None:
    train(tiny_recipe(tmp_path, "epochs=2"), out=tmp_path / "run", quiet=True)
    run = RunDirectory.open(tmp_path / "run")
    # Shorten the run to two epochs of three, then damage its newest checkpoint.
    longer = dataclasses.replace(run.recipe(), optim=dataclasses.replace(run.recipe().optim, epochs=3))
    newest = listed(run.checkpoints)[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    train(longer, resume=run.path)
    assert f"passed over: {newest}" in capsys.readouterr().out
    assert [e["epoch"] for e in run.metrics()] == [1, 2, 3]


def test_a_loss_that_is_not_finite_stops_with_step_terms_and_checkpoint(tmp_path, monkeypatch) -> None:
    forward, calls = Objective.forward, []

    def explode(self, images, labels):
        calls.append(1)
        outcome = forward(self, images, labels)
        return outcome._replace(loss=outcome.loss * float("nan")) if len(calls) == 14 else outcome

    monkeypatch.setattr(Objective, "forward", explode)
    with pytest.raises(
        TrainingStopped, match=r"nan at epoch 2, step 3 .task .*latent .*00001-000000.safetensors"
    ):
        train(tiny_recipe(tmp_path), out=tmp_path / "run", quiet=True)


def test_recipes_that_do_not_fit_are_refused(tmp_path) -> None:
    with pytest.raises(LatentbitError, match="batch_size = 5000 is larger than the training set"):
        train(tiny_recipe(tmp_path, "batch_size=5000"), out=tmp_path / "run", quiet=True)


def test_any_network_can_teach(tmp_path) -> None:
    class Constant(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 20.0 * torch.nn.functional.one_hot(torch.full((len(x),), 3), 10).float()

    run, scores = train(
        tiny_recipe(tmp_path, "latent=none"), out=tmp_path / "run", teacher=Constant(), quiet=True
    )
    assert run.metrics()[-1]["task"] < 0.3  # easy to learn: the answer is always 3
    assert scores.binary.accuracy < 0.2


def test_attention_is_matched_to_that_of_a_teacher(tmp_path) -> None:
    options = ("latent=none", "options.widths=[8, 16]", "epochs=2")
    real, _ = train(tiny_recipe(tmp_path, *options, "binarize=false"), out=tmp_path / "real", quiet=True)
    chosen = tiny_recipe(tmp_path, *options, f"teacher={real.path}", "attention_weight=30")
    run, _ = train(chosen, out=tmp_path / "run", quiet=True)
    first, last = run.metrics()
    assert 0 < last["attention"] < first["attention"]
    assert last["loss"] == pytest.approx(last["task"] + 30 * last["attention"], rel=1e-4)
    with pytest.raises(TrainingStopped, match="attention_weight=30.0 .* add teacher=RUN"):
        train(tiny_recipe(tmp_path, *options, "attention_weight=30"), out=tmp_path / "none", quiet=True)


def test_every_step_and_process_has_a_seed_of_its_own() -> None:
    seeds = {step_seed(s, step, r) for s in range(3) for step in range(500) for r in range(4)}
    assert len(seeds) == 3 * 500 * 4


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for split, count in (("train", 4), ("val", 2)):
        for name in ("ant", "bee"):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / split / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def teacher(images, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("teacher") / "run"
    tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
    chosen = recipe.load(
        "cifar10_resnet20_fp32", [*tiny, "batch_size=4", "epochs=1", "compile=off", "device=cpu"]
    )
    train(chosen, out=out, quiet=True)
    return out


@pytest.mark.parametrize("name", recipe.names())
def test_every_recipe_runs_two_steps(name, images, teacher, tmp_path) -> None:
    tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
    tiny += ["batch_size=4", "epochs=1", "compile=off", "device=cpu", "recalibrate_batches=1"]
    tiny += ["warmup_epochs=0", "start="]
    if recipe.load(name).loss.teacher:
        tiny.append(f"teacher={teacher}")
    run, scores = train(recipe.load(name, tiny), out=tmp_path / "run", quiet=True)
    assert scores is not None and scores.binary.total == 4
    assert run.metrics()[0]["steps"] == 2


def test_there_are_recipes() -> None:
    assert len(recipe.names()) > 20


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
    assert (
        not list(run.rglob("*.tmp")) or killed
    )  # a kill may leave a temporary, never a half file under a name


def test_sigint_saves_and_says_how_to_go_on(tmp_path, finished) -> None:
    tiny_recipe(tmp_path)
    command = latentbit_command("train", "tiny.toml", "epochs=200", "--out", "run")
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1/"):
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "stopped by SIGINT; go on with: latentbit train --resume run" in rest
    assert listed(tmp_path / "run" / "checkpoints")


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
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-5, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
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


def test_two_stages_first_binary_activations_then_binary_weights(tmp_path) -> None:
    """The first stage computes with W and signs; the second begins with the weights that it left."""
    options = ("options.widths=[4, 4]", "epochs=2", "latent=none")
    first = tiny_recipe(tmp_path, *options, "real_weights=true")
    train(first, out=tmp_path / "first", quiet=True)
    model = build_model(first.model, 10, 1)
    read_model(tmp_path / "first" / "best.safetensors", model)
    binary = build_model(dataclasses.replace(first.model, real_weights=False), 10, 1)
    binary.load_state_dict(model.state_dict())
    images = torch.randn(4, 1, 8, 8)
    torch.testing.assert_close(model.eval()(images), stale_view(binary.eval())(images))
    assert not torch.equal(model(images), binary(images))

    second = tiny_recipe(tmp_path, *options, f"start={tmp_path / 'first'}", "lr=1e-30")
    train(second, out=tmp_path / "second", quiet=True)
    name = "stages.0.0.conv.weight"
    assert torch.equal(weights(tmp_path / "second")[name], weights(tmp_path / "first", "best")[name])
