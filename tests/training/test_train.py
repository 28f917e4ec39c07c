"""The loop: what a run leaves, that it resumes bit for bit, what it refuses; more of it in test_train_*.py."""

import dataclasses
import json
import math
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from tiny_run import (
    call,
    latentbit_command,
    same,
    tiny_recipe,
    weights,
    without_times,
)

from latentbit import data, runs
from latentbit.checkpoints.checkpoint import listed, read_model
from latentbit.errors import LatentbitError
from latentbit.objective import Objective
from latentbit.recipes.build import build_model
from latentbit.runs import RunDirectory, RunError, RunLock
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training import compiling
from latentbit.training.interrupt import Interrupt
from latentbit.training.state import TrainingState, TrainingStopped, step_seed
from latentbit.training.train import train
from latentbit.views import stale_view


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_compiling_stops_at_once_and_loses_nothing(
    finished, tmp_path, monkeypatch, capsys, number
) -> None:
    def compiling(self: TrainingState, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.model.fc.weight.data.zero_()  # what a step may have done by then
        os.kill(os.getpid(), number)
        raise AssertionError("it went on")

    with monkeypatch.context() as patch:
        patch.setattr(TrainingState, "step", compiling)
        recipe = tiny_recipe(tmp_path, "compile=on")
        assert train(recipe, out=tmp_path / "run").scores is None
    said = capsys.readouterr().out
    assert f"stopped by {number.name} while compiling; to continue: latentbit train --resume" in said
    assert listed(tmp_path / "run" / "checkpoints") == []
    train(tiny_recipe(tmp_path, "compile=off"), resume=tmp_path / "run", quiet=True)
    assert same(weights(tmp_path / "run"), weights(finished))


def stopped_and_resumed(folder: Path, patch: pytest.MonkeyPatch, steps: int, *changes: str) -> None:
    """folder/run stopped after some steps and resumed, beside folder/whole, which was not: the same weights."""
    train(tiny_recipe(folder, *changes), out=folder / "whole", quiet=True)
    with patch.context() as stopping:
        stop = StopAt(steps)
        stopping.setattr(Interrupt, "wanted", lambda self, device: stop(self, device))
        assert train(tiny_recipe(folder, *changes), out=folder / "run", quiet=True).scores is None
    train(runs.open(folder / "run").recipe(), resume=folder / "run", quiet=True)
    assert same(weights(folder / "run"), weights(folder / "whole"))
    assert without_times(folder / "run") == without_times(folder / "whole")


def test_average_clipping_and_warm_up_resume_bit_for_bit(tmp_path, monkeypatch) -> None:
    changes = (
        "ema=0.9",
        "clip_norm=1",
        "warmup_epochs=1",
        "epochs=2",
        "optimizer=sgd",
        "lr=0.05",
        "latent=none",
    )
    stopped_and_resumed(tmp_path, monkeypatch, 5, *changes)


def test_dropout_resumes_bit_for_bit(tmp_path, monkeypatch) -> None:
    """VGG-small has dropout in front of its classifier: its masks are a function of the step."""
    changes = ("network=vgg_small", "options={final_map=1}", "epochs=1", "batch_size=256", "latent=none")
    model = build_model(tiny_recipe(tmp_path, *changes), 10, 1)
    assert any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules())
    stopped_and_resumed(tmp_path, monkeypatch, 2, *changes)


def test_a_compiled_run_resumed_near_its_end_stays_compiled(tmp_path, monkeypatch) -> None:
    """The choice of compile="auto" is made from all steps, once, and kept: not from the steps that are left."""
    monkeypatch.setattr(compiling, "COMPILE_PAYS_FROM", 20)  # the run has 22 steps
    compiled, compile_module = [], torch.compile

    def counted(module: torch.nn.Module) -> torch.nn.Module:
        compiled.append(module)
        return compile_module(module)

    monkeypatch.setattr(torch, "compile", counted)
    stopped_and_resumed(
        tmp_path, monkeypatch, 15, "compile=auto", "epochs=2", "latent=none", "options={widths=[4]}"
    )
    assert len(compiled) == 3  # the whole run, the stopped one, the resumed one
    assert runs.open(tmp_path / "run").environment()["compiled"] is True


def test_accumulated_parts_have_the_gradient_of_the_whole_batch(tmp_path) -> None:
    """Without BatchNorm's batch statistics the parts of a step add up to the step itself."""
    recipe = tiny_recipe(tmp_path, "latent=none", "optimizer=sgd", "lr=0.1", "batch_size=64")
    facts = DatasetFacts.of(data.open(recipe.data))
    images, labels = torch.randn(64, 1, 8, 8), torch.randint(10, (64,))
    ends = []
    for parts in (1, 4):
        chosen = dataclasses.replace(recipe, optim=dataclasses.replace(recipe.optim, accumulate=parts))
        state = TrainingState(chosen, facts, torch.device("cpu"), 11)
        state.objective.eval()
        state.step(images, labels)
        ends.append(state)
    for (name, one), four in zip(ends[0].model.named_parameters(), ends[1].model.parameters(), strict=True):
        torch.testing.assert_close(one, four, rtol=1e-4, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")
    assert ends[0].meter.read()["images"] == ends[1].meter.read()["images"] == 64
    assert ends[1].meter.read()["loss"] == pytest.approx(ends[0].meter.read()["loss"], rel=1e-5)
    with pytest.raises(TrainingStopped, match="accumulate=5 does not divide the 128 images"):
        train(tiny_recipe(tmp_path, "accumulate=5"), out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_accumulation_trains_and_resumes(tmp_path, monkeypatch) -> None:
    stopped_and_resumed(tmp_path, monkeypatch, 3, "accumulate=4", "epochs=1")


def test_a_recipe_edited_since_the_stop_is_refused_unless_accepted(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        stop = StopAt(13)
        patch.setattr(Interrupt, "wanted", lambda self, device: stop(self, device))
        train(tiny_recipe(tmp_path), out=tmp_path / "run", quiet=True)
    file = tmp_path / "run" / "recipe.toml"
    file.write_text(file.read_text().replace("lr = 0.005", "lr = 0.001").replace("epochs = 3", "epochs = 2"))
    changed = runs.open(tmp_path / "run").recipe()
    with pytest.raises(RunError, match=r"was changed since .*: optim.lr, optim.epochs\. .*--accept-changes"):
        train(changed, resume=tmp_path / "run", quiet=True)
    train(changed, resume=tmp_path / "run", quiet=True, accept_changes=True)
    entries = runs.open(tmp_path / "run").metrics()
    assert len(entries) == 2 and entries[-1]["lr"] < 0.001


def test_two_processes_cannot_train_the_same_run(tmp_path) -> None:
    train(tiny_recipe(tmp_path, "epochs=1"), out=tmp_path / "run", quiet=True)
    with RunLock(tmp_path / "run"):
        done = call(latentbit_command("train", "--resume", "run"), tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"run is being trained by process {os.getpid()} on" in done.stderr


def test_a_broken_checkpoint_is_named_and_the_one_before_it_taken(finished, tmp_path, capsys) -> None:
    train(tiny_recipe(tmp_path, "epochs=2"), out=tmp_path / "run", quiet=True)
    run = RunDirectory.open(tmp_path / "run")
    # Shorten the run to two epochs of three, then damage its newest checkpoint.
    longer = dataclasses.replace(run.recipe(), optim=dataclasses.replace(run.recipe().optim, epochs=3))
    newest = listed(run.checkpoints)[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    train(longer, resume=run.path, accept_changes=True)
    assert f"skipping broken checkpoint: {newest}" in capsys.readouterr().out
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


def test_two_stages_first_binary_activations_then_binary_weights(tmp_path) -> None:
    """The first stage computes with W and signs; the second begins with the weights that it left."""
    options = ("options.widths=[4, 4]", "epochs=2", "latent=none")
    first = tiny_recipe(tmp_path, *options, "real_weights=true")
    train(first, out=tmp_path / "first", quiet=True)
    model = build_model(first, 10, 1)
    read_model(tmp_path / "first" / "best.safetensors", model)
    binary = build_model(
        dataclasses.replace(first, model=dataclasses.replace(first.model, real_weights=False)), 10, 1
    )
    binary.load_state_dict(model.state_dict())
    images = torch.randn(4, 1, 8, 8)
    torch.testing.assert_close(model.eval()(images), stale_view(binary.eval())(images))
    assert not torch.equal(model(images), binary(images))

    second = tiny_recipe(tmp_path, *options, f"start={tmp_path / 'first'}", "lr=1e-30")
    train(second, out=tmp_path / "second", quiet=True)
    name = "stages.0.0.conv.weight"
    assert torch.equal(weights(tmp_path / "second")[name], weights(tmp_path / "first", "best")[name])


STAGES = (
    "options.widths=[4, 4]", "epochs=1", "latent=none", "method=rbnn", "ema=0.5",
    "first.real_weights=true", "first.epochs=2",
)  # fmt: skip


def test_one_command_trains_both_stages_and_one_resumes_both(tmp_path, monkeypatch, capsys) -> None:
    """Stopped in the first stage, then in the second: the end is that of a run which was not stopped."""
    recipe = tiny_recipe(tmp_path, *STAGES)
    whole, scores = train(recipe, out=tmp_path / "whole", quiet=True)
    assert scores is not None and len(whole.metrics()) == 1
    first = runs.open(whole.path / "first")
    assert len(first.metrics()) == 2 and first.recipe().model.real_weights
    assert whole.recipe().first == {"real_weights": True, "epochs": 2}

    for stop_at, resume in ((13, None), (5, tmp_path / "run")):
        with monkeypatch.context() as patch:
            stop = StopAt(stop_at if resume is None else 22 - 13 + stop_at)
            patch.setattr(Interrupt, "wanted", lambda self, device, stop=stop: stop(self, device))
            out = tmp_path / "run" if resume is None else None
            assert train(recipe, out=out, resume=resume).scores is None
        assert f"latentbit train --resume {tmp_path / 'run'}\n" in capsys.readouterr().out
        assert listed(tmp_path / "run" / "checkpoints") == [] if resume is None else True
    shutil.rmtree(tmp_path / "run" / "first")  # the second stage has all it needs
    end = train(runs.open(tmp_path / "run").recipe(), resume=tmp_path / "run", quiet=True)
    assert end.scores == scores
    assert same(weights(end.run.path), weights(whole.path))


def test_the_second_stage_begins_where_the_first_ends(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path, *STAGES, "lr=1e-30", "weight_decay=0", "first.lr=1e-2")
    run, _ = train(recipe, out=tmp_path / "run", quiet=True)
    name = "stages.0.0.conv.weight"
    assert torch.equal(weights(run.path)[name], weights(run.path / "first")[name])
