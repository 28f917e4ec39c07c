"""The one training loop: data -> state -> steps -> run directory. Read it top to bottom.

    latentbit train cifar10_resnet18_compact epochs=2
    latentbit train --resume runs/cifar10_resnet18_compact
    torchrun --nproc-per-node 4 -m latentbit train imagenet_resnet18 root=/data/imagenet

Every batch, crop and dropout mask is a function of (seed, epoch, step), and a checkpoint holds the rest: a run that
was stopped anywhere and resumed ends with the same weights, bit for bit, as one that was not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from latentbit import data, distributed, runs
from latentbit.atomic import remove_temporary
from latentbit.data import Dataset
from latentbit.distributed.device import choose_device
from latentbit.recipes import Recipe
from latentbit.runs import RUNS, RunDirectory, RunLock, new_path, newest_path, require_free, writing
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.board import Board
from latentbit.training.compiling import can_compile, compile_pays
from latentbit.training.display import Display
from latentbit.training.epoch import close_epoch
from latentbit.training.evaluate import Scores, scores
from latentbit.training.interrupt import Interrupt
from latentbit.training.memory import keep_freed_memory
from latentbit.training.pulse import Pulse
from latentbit.training.state import TrainingState


class Training(NamedTuple):
    """What a training leaves: the run directory, and the final accuracies unless a signal stopped it."""

    run: RunDirectory
    scores: Scores | None


def train(
    recipe: Recipe,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    accept_changes: bool = False,
    teacher: nn.Module | None = None,
    quiet: bool = False,
    display: Display | None = None,
) -> Training:
    """Run a recipe to its end in a new run directory, or continue the one to resume.

    `teacher` is any network whose soft labels are to replace the labels; a recipe can name that of another run.
    A recipe that differs from the one a run was stopped with is refused unless `accept_changes`.
    """
    keep_freed_memory()
    device = choose_device(recipe.run.device)
    started = distributed.start(device)
    shown = display or Display(quiet=quiet or distributed.rank() > 0)
    try:
        dataset = data.open(recipe.data, device)
        facts, steps = DatasetFacts.of(dataset), dataset.steps_per_epoch(recipe.data.batch_size)
        state = TrainingState(recipe, facts, device, steps, teacher=teacher)
        with _run_directory(recipe, facts, steps, device, out, resume) as run:
            state.compiled = _stays_compiled(run, recipe, device, steps, shown)
            for problem in state.restore(run, accept_changes):
                shown.say(f"skipping broken checkpoint: {problem}")
            shown.say(
                f"{recipe.name}: {recipe.optim.epochs} epochs of {steps} steps on {device}, run in {run.path}"
            )
            if state.compiled and state.done < state.total_steps:
                shown.say("compiling the network: the first step takes a minute or two")
            return Training(run, _loop(run, state, dataset, shown))
    finally:
        if started:
            distributed.stop()


def _loop(run: RunDirectory, state: TrainingState, dataset: Dataset, display: Display) -> Scores | None:
    recipe, last_epoch = state.recipe, state.recipe.optim.epochs - 1
    result: Scores | None = None
    with (
        display.over(recipe.optim.epochs, state.steps_per_epoch, state.done),
        Interrupt() as interrupt,
        Board(run.path, state.position.epoch, distributed.rank() == 0) as board,
    ):
        pulse = Pulse(run, state, display, interrupt)
        for epoch in range(state.position.epoch, recipe.optim.epochs):
            state.begin_epoch()
            stop = False
            batches = dataset.train_batches(
                epoch,
                batch_size=recipe.data.batch_size,
                seed=recipe.run.seed,
                rank=distributed.rank(),
                world=distributed.world_size(),
                start_step=state.position.step,
            )
            pulse.begin_epoch()
            for images, labels in batches:
                state.step(images, labels)
                stop = pulse.after_step()
                if stop:
                    break
            if state.position.step == state.steps_per_epoch:
                result = close_epoch(run, state, dataset, display, board)
            if stop or epoch == last_epoch or (epoch + 1) % recipe.run.checkpoint_every == 0:
                pulse.save()
            if stop and state.position.epoch <= last_epoch:
                display.say(f"stopped by {interrupt.name}; to continue: latentbit train --resume {run.path}")
                return None
    if result is None:  # the run was finished before it was resumed
        network = run.network("last", state.device)
        result = scores(
            network,
            dataset,
            batch_size=recipe.data.batch_size,
            recalibrate_batches=recipe.run.recalibrate_batches,
        )
    return result


def _stays_compiled(
    run: RunDirectory, recipe: Recipe, device: torch.device, steps_per_epoch: int, display: Display
) -> bool:
    """The choice of the run's first start: compiled and plain steps round differently."""
    stored = run.environment().get("compiled")
    pays = compile_pays(recipe.run.compile, device, recipe.optim.epochs * steps_per_epoch)
    if recipe.run.compile != "auto":
        return pays
    compiled = stored if isinstance(stored, bool) else pays
    if compiled and not can_compile(device):
        display.say(
            "this run was compiled where it began, which cannot be done here (no C++ compiler): it continues "
            "uncompiled, and its weights may differ in the last bits"
        )
        return False
    return compiled


@contextmanager
def _run_directory(
    recipe: Recipe,
    facts: DatasetFacts,
    steps_per_epoch: int,
    device: torch.device,
    out: Path | None,
    resume: Path | None,
) -> Iterator[RunDirectory]:
    """The run to continue, or a new one, locked. Rank 0 owns it, all read from it.

    Workers that torchrun has restarted continue what they began.
    """
    restarted = distributed.restarted()
    if distributed.rank() > 0:
        yield runs.open(distributed.text_of_rank_0(""))
        return
    begun = out if out is not None else newest_path(RUNS, recipe.name)
    if resume is None and restarted and begun is not None and (begun / "recipe.toml").is_file():
        resume = begun
    path = out or new_path(RUNS, recipe.name) if resume is None else runs.open(resume).path
    if resume is None:
        require_free(path)
    with writing(path), RunLock(path):
        if resume is None:
            compiled = compile_pays(recipe.run.compile, device, recipe.optim.epochs * steps_per_epoch)
            run = RunDirectory.create(recipe, path, facts, compiled=compiled)
        else:
            run = runs.open(resume)
            run.check_data(facts)
            for folder in (path, run.checkpoints):
                remove_temporary(folder)
        distributed.text_of_rank_0(str(path))
        yield run
