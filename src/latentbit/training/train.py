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
from latentbit.recipes import Recipe, first_stage
from latentbit.runs import RUNS, RunDirectory, RunLock, new_path, newest_path, require_free, writing
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.board import Board
from latentbit.training.compiling import can_compile, compile_pays
from latentbit.training.display import Display
from latentbit.training.epoch import close_epoch
from latentbit.training.evaluate import Scores, scores
from latentbit.training.interrupt import Interrupt, StoppedAtOnce
from latentbit.training.memory import keep_freed_memory
from latentbit.training.pulse import Pulse
from latentbit.training.state import TrainingState

FIRST = "first"
"""Folder of the first of two stages, inside the run of the second."""


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

    A recipe with a [first] table has two stages. The first is a run of its own inside the folder of the second, and to
    resume that one is to resume both.

    `teacher` is any network whose soft labels are to replace the labels; a recipe can name that of another run.
    A recipe that differs from the one a run was stopped with is refused unless `accept_changes`.
    """
    keep_freed_memory()
    device = choose_device(recipe.run.device)
    started = distributed.start(device)
    shown = display or Display(quiet=quiet or distributed.rank() > 0)
    try:
        return _trained(recipe, device, shown, out, resume, accept_changes, teacher)
    finally:
        if started:
            distributed.stop()


def _trained(
    recipe: Recipe,
    device: torch.device,
    display: Display,
    out: Path | None,
    resume: Path | None,
    accept_changes: bool,
    teacher: nn.Module | None,
    whole: Path | None = None,
) -> Training:
    """One stage. `whole` is the run that this is the first stage of; to resume that one is to resume this one."""
    dataset = data.open(recipe.data, device)
    facts, steps = DatasetFacts.of(dataset), dataset.steps_per_epoch(recipe.data.batch_size)
    state = TrainingState(recipe, facts, device, steps, teacher=teacher)
    with _run_directory(recipe, facts, state, device, out, resume, whole) as run:
        state.compiled = _stays_compiled(run, recipe, device, steps, display)
        for problem in state.restore(run, accept_changes):
            display.say(f"skipping broken checkpoint: {problem}")
        if recipe.first and not state.restored:
            first = _first_stage(recipe, run, device, display, accept_changes, teacher)
            if first.scores is None:
                return Training(run, None)
            state.begin_with(first.run)
        if state.started is not None and not state.restored:
            for line in state.started.lines():
                display.say(line)
        display.say(
            f"{recipe.name}: {recipe.optim.epochs} epochs of {steps} steps on {device}, run in {run.path}"
        )
        if state.compiled and state.done < state.total_steps:
            display.say("compiling the network: the first step takes a minute or two")
        try:
            return Training(run, _loop(run, state, dataset, display, whole or run.path))
        except StoppedAtOnce as stopped:
            display.say(f"stopped by {stopped} while compiling; {_to_continue(whole or run.path)}")
            return Training(run, None)


def _first_stage(
    recipe: Recipe,
    run: RunDirectory,
    device: torch.device,
    display: Display,
    accept_changes: bool,
    teacher: nn.Module | None,
) -> Training:
    """Train the stage before, or go on with it, in a folder of its own inside the run.

    Also when it seems finished: killed between its last metrics and its last weights, it has them only then.
    """
    path, stage = run.path / FIRST, first_stage(recipe)
    begun = (path / "recipe.toml").is_file()
    display.say(f"{recipe.name}: the first of two stages is trained in {path}")
    out, resume = (None, path) if begun else (path, None)
    trained = _trained(stage, device, display, out, resume, accept_changes, teacher, whole=run.path)
    distributed.text_of_rank_0(
        ""
    )  # which comes here when its weights are on the disk; the others read them next
    return trained


def _loop(
    run: RunDirectory, state: TrainingState, dataset: Dataset, display: Display, whole: Path
) -> Scores | None:
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
                # The first step compiles, for a minute or two, and changes nothing that is on the disk.
                with interrupt.at_once(state.compiled and not state.stepped):
                    state.step(images, labels)
                stop = pulse.after_step()
                if stop:
                    break
            if state.position.step == state.steps_per_epoch:
                result = close_epoch(run, state, dataset, display, board)
            if stop or epoch == last_epoch or (epoch + 1) % recipe.run.checkpoint_every == 0:
                pulse.save()
            if stop and state.position.epoch <= last_epoch:
                display.say(f"stopped by {interrupt.name}; {_to_continue(whole)}")
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


def _to_continue(run: Path) -> str:
    return f"to continue: latentbit train --resume {run}"


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
    state: TrainingState,
    device: torch.device,
    out: Path | None,
    resume: Path | None,
    whole: Path | None,
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
    with writing(path, whole), RunLock(path):
        if resume is None:
            known: dict[str, object] = {
                "compiled": compile_pays(recipe.run.compile, device, state.total_steps)
            }
            if state.started is not None:
                known["start"] = state.started.as_dict()
            run = RunDirectory.create(recipe, path, facts, **known)
        else:
            run = runs.open(resume)
            run.check_data(facts)
            for folder in (path, run.checkpoints):
                remove_temporary(folder)
        distributed.text_of_rank_0(str(path))
        yield run
