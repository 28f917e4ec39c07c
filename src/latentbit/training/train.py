"""The one training loop: data -> model -> views -> losses -> steps -> run directory. Read it top to bottom.

    latentbit train cifar10_resnet18_compact epochs=2
    latentbit train --resume runs/cifar10_resnet18_compact
    torchrun --nproc-per-node 4 -m latentbit train imagenet_resnet18 root=/data/imagenet

Every batch, crop and dropout mask is a function of (seed, epoch, step), and a checkpoint holds the rest: a run that
was stopped anywhere and resumed ends with the same weights, bit for bit, as one that was not.
"""

import copy
import math
import time
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from latentbit import data, distributed
from latentbit.atomic import remove_temporary
from latentbit.distributed.batchnorm import sync_batchnorm_
from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective
from latentbit.projection import spread
from latentbit.recipes import Recipe
from latentbit.runs import checkpoint
from latentbit.runs.checkpoint import Position
from latentbit.runs.directory import RunDirectory, RunError, new_path, newest_path
from latentbit.training import flips, optimizers
from latentbit.training.board import Board
from latentbit.training.build import build_model, build_objective, deployed_model, load_teacher, model_file
from latentbit.training.device import autocast_for, choose_device, compile_pays
from latentbit.training.display import Display
from latentbit.training.evaluate import Scores, scores
from latentbit.training.interrupt import Interrupt
from latentbit.training.metrics import add_step, epoch_entry, score_entry
from latentbit.training.schedule import learning_rate
from latentbit.training.teacher import Teacher
from latentbit.views import TwoView

RUNS = Path("runs")


class TrainingStopped(LatentbitError):
    """Training could not go on: a loss that is not finite, or a recipe that does not fit the machine."""


class Trained(NamedTuple):
    """What a training leaves: the run directory, and the final accuracies unless a signal stopped it."""

    run: RunDirectory
    scores: Scores | None


def train(
    recipe: Recipe,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    teacher: nn.Module | None = None,
    quiet: bool = False,
) -> Trained:
    """Run a recipe to its end in a new run directory, or go on with the one to resume.

    `teacher` is any network whose soft labels are to replace the labels; a recipe can name that of another run.
    """
    device = choose_device(recipe.run.device)
    started = distributed.start(device)
    try:
        return _train(recipe, device, out, resume, teacher, quiet or distributed.rank() > 0)
    finally:
        if started:
            distributed.stop()


def _train(
    recipe: Recipe,
    device: torch.device,
    out: Path | None,
    resume: Path | None,
    teacher: nn.Module | None,
    quiet: bool,
) -> Trained:
    rank, world = distributed.rank(), distributed.world_size()
    run_options, optim = recipe.run, recipe.optim
    if recipe.data.batch_size % world:
        raise TrainingStopped(f"batch_size={recipe.data.batch_size} does not divide among {world} processes")

    # Data, network, objective and optimizer. The seed fixes the initial weights, the same on every process.
    dataset = data.open(recipe.data, device)
    torch.manual_seed(run_options.seed)
    model = build_model(recipe, dataset.num_classes, dataset.in_channels)
    if recipe.model.start:
        checkpoint.read_model(model_file(recipe.model.start), model)
    objective = build_objective(recipe.loss, model, dataset.num_classes).to(device)
    if run_options.sync_batchnorm and world > 1:
        sync_batchnorm_(objective)
    optimizer = optimizers.create(objective, optim)
    teacher = load_teacher(recipe, dataset, device) if teacher is None else teacher
    asked = None if teacher is None else Teacher(teacher.to(device), recipe.loss.attention_weight > 0)
    if asked is None and recipe.loss.attention_weight > 0:
        raise TrainingStopped(
            f"attention_weight={recipe.loss.attention_weight} compares with a teacher: add teacher=RUN"
        )
    average = copy.deepcopy(model) if optim.ema > 0 else None
    steps_per_epoch = dataset.steps_per_epoch(recipe.data.batch_size)
    total_steps = optim.epochs * steps_per_epoch
    warmup_steps = round(optim.warmup_epochs * steps_per_epoch)

    # Where to begin. Rank 0 owns the run directory; all read from it.
    position, signs_before = Position(), flips.signs(model)
    run = _open_run(recipe, out, resume)
    position, signs_before = _restore(run, objective, optimizer, average, position, signs_before, quiet)

    step_module: nn.Module = objective
    if world > 1:
        # With real weights a method's own parameters, such as scales of its bits, are in no gradient.
        unused = recipe.model.real_weights
        step_module = DistributedDataParallel(objective, find_unused_parameters=unused)
    compiled = compile_pays(run_options.compile, device, total_steps - position.epoch * steps_per_epoch)
    forward = torch.compile(step_module) if compiled else step_module
    layers = [module for module in model.modules() if isinstance(module, BINARY_LAYERS)]
    autocast = autocast_for(run_options.precision, device)

    result: Scores | None = None
    saved = time.perf_counter()
    display = Display(optim.epochs, steps_per_epoch, position.epoch * steps_per_epoch + position.step, quiet)
    with display, Interrupt() as interrupt, Board(run.path, position.epoch, rank == 0) as board:
        display.say(
            f"{recipe.name}: {optim.epochs} epochs of {steps_per_epoch} steps on {device}, run in {run.path}"
        )
        if compiled:
            display.say("compiling the network: the first step takes a minute or two")
        for epoch in range(position.epoch, optim.epochs):
            for layer in layers:
                layer.binarizer.set_progress(epoch / optim.epochs)
            if position.step == 0:
                signs_before, position.sums = flips.signs(model), {}
            objective.train()
            batches = dataset.train_batches(
                epoch,
                batch_size=recipe.data.batch_size,
                seed=run_options.seed,
                rank=rank,
                world=world,
                start_step=position.step,
            )
            clock = time.perf_counter()
            projected = labels = None
            for images, labels in batches:
                done = epoch * steps_per_epoch + position.step
                lr = learning_rate(done, total_steps, optim.lr, warmup_steps, optim.schedule)
                for group in optimizer.param_groups:
                    group["lr"] = lr
                torch.manual_seed(step_seed(run_options.seed, done, rank))  # dropout
                with autocast:
                    outcome = forward(images, labels, *(() if asked is None else asked(images)))
                loss = float(outcome.loss.detach())
                if not math.isfinite(loss):
                    raise TrainingStopped(_not_finite(run, epoch, position.step, outcome.terms, loss))
                optimizer.zero_grad(set_to_none=True)
                outcome.loss.backward()
                if optim.clip_norm > 0:
                    nn.utils.clip_grad_norm_(objective.parameters(), optim.clip_norm)
                optimizer.step()
                with torch.no_grad():
                    for layer in layers:
                        layer.binarizer.after_step(layer.weight, lr)
                    if average is not None:
                        _update_average(average, model, optim.ema)
                projected = outcome.projected

                position.step += 1
                now = time.perf_counter()
                terms = {"loss": loss} | {name: float(value) for name, value in outcome.terms.items()}
                correct = float((outcome.logits.detach().argmax(1) == labels).sum())
                add_step(position.sums, terms, correct, len(labels), now - clock)
                speed = world * len(labels) / max(1e-9, now - clock)
                clock = now
                display.step(epoch, position.step, lr, speed, terms)
                inside = position.step < steps_per_epoch
                if inside and now - saved > 60 * run_options.checkpoint_minutes:
                    _save(run, position, objective, optimizer, average, signs_before)
                    saved = time.perf_counter()
                if interrupt.wanted(device) and inside:
                    _save(run, position, objective, optimizer, average, signs_before)
                    display.say(
                        f"stopped by {interrupt.name}; go on with: latentbit train --resume {run.path}"
                    )
                    return Trained(run, None)

            # The epoch is done: score it, log it, keep it.
            deployed = model if average is None else average
            distributed.take_buffers_of_rank_0(objective)
            last_epoch = epoch + 1 == optim.epochs
            entry = epoch_entry(epoch, position, steps_per_epoch, lr, world, device)
            entry["flip_rate"] = flips.flip_rate(signs_before, flips.signs(model))
            if projected is not None and labels is not None:
                entry["spread"] = spread(projected.float(), labels, dataset.num_classes)
            if last_epoch or (epoch + 1) % run_options.eval_every == 0:
                latent = objective.network.latent if isinstance(objective.network, TwoView) else None
                result = scores(
                    deployed,
                    dataset,
                    latent=latent if average is None else None,
                    batch_size=recipe.data.batch_size,
                    recalibrate_batches=run_options.recalibrate_batches,
                )
                entry |= score_entry(result)
            if rank == 0:
                run.log(entry)
                facts = {"recipe": recipe.name, "epoch": epoch + 1} | {
                    key: value for key, value in entry.items() if key.startswith("accuracy")
                }
                checkpoint.write_model(run.last, deployed, facts)
                if entry.get("accuracy_b", -1.0) > position.best:
                    checkpoint.write_model(run.best, deployed, facts)
            position = Position(epoch + 1, 0, max(position.best, entry.get("accuracy_b", -1.0)))
            stop = interrupt.wanted(device)
            if stop or last_epoch or (epoch + 1) % run_options.checkpoint_every == 0:
                _save(run, position, objective, optimizer, average, signs_before)
                saved = time.perf_counter()
            display.epoch(entry)
            board.log(entry)
            if stop and not last_epoch:
                display.say(f"stopped by {interrupt.name}; go on with: latentbit train --resume {run.path}")
                return Trained(run, None)
    if result is None:  # the run was finished before it was resumed
        finished = deployed_model(run, recipe, dataset, device, "last")
        result = scores(finished, dataset, recalibrate_batches=run_options.recalibrate_batches)
    return Trained(run, result)


def _open_run(recipe: Recipe, out: Path | None, resume: Path | None) -> RunDirectory:
    """The run to go on with, or a new one. Workers that torchrun has restarted go on with what they began."""
    path, restarted = "", distributed.restarted()
    if distributed.rank() == 0:
        begun = out if out is not None else newest_path(RUNS, recipe.name)
        if resume is None and restarted and begun is not None and (begun / "recipe.toml").is_file():
            resume = begun
        if resume is None:
            path = str(RunDirectory.create(recipe, out or new_path(RUNS, recipe.name)).path)
        else:
            path = str(RunDirectory.open(resume).path)
            for folder in (resume, resume / "checkpoints"):
                remove_temporary(folder)
    return RunDirectory.open(Path(distributed.text_of_rank_0(path)))


def step_seed(seed: int, step: int, rank: int) -> int:
    """A seed of its own for every step and process, so that nothing random needs saving."""
    return (seed * 1_000_003 + step) * 4099 + rank


def _update_average(average: nn.Module, model: nn.Module, decay: float) -> None:
    for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
        mine.lerp_(theirs, 1 - decay)
    for mine_b, theirs_b in zip(average.buffers(), model.buffers(), strict=True):
        mine_b.copy_(theirs_b)


def _save(
    run: RunDirectory,
    position: Position,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    average: nn.Module | None,
    signs: dict[str, Tensor],
) -> None:
    if distributed.rank() == 0:
        extra = {f"signs.{name}": mask for name, mask in signs.items()}
        if average is not None:
            extra |= {f"average.{name}": value for name, value in average.state_dict().items()}
        checkpoint.write(run.checkpoints, position, objective, optimizer, extra)


def _restore(
    run: RunDirectory,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    average: nn.Module | None,
    position: Position,
    signs: dict[str, Tensor],
    quiet: bool,
) -> tuple[Position, dict[str, Tensor]]:
    """Take up the newest whole checkpoint; a run killed before its first one begins anew."""
    path, broken = checkpoint.newest_whole(run.checkpoints)
    for problem in broken if not quiet else []:
        print(f"passed over: {problem}")
    if path is None:
        if broken:
            raise RunError(f"{run.path} has no whole checkpoint left: {broken[0]}")
        return position, signs
    position, extra = checkpoint.read(path, objective, optimizer)
    if average is not None:
        prefix = "average."
        average.load_state_dict({k.removeprefix(prefix): v for k, v in extra.items() if k.startswith(prefix)})
    return position, {k.removeprefix("signs."): v for k, v in extra.items() if k.startswith("signs.")}


def _not_finite(run: RunDirectory, epoch: int, step: int, terms: dict[str, Tensor], loss: float) -> str:
    parts = ", ".join(f"{name} {float(value):.4g}" for name, value in terms.items())
    path, _ = checkpoint.newest_whole(run.checkpoints)
    kept = f"the last good checkpoint is {path}" if path else "there is no checkpoint yet"
    return (
        f"the loss is {loss} at epoch {epoch + 1}, step {step + 1} ({parts}); {kept}. "
        "Lower lr or latent_weight, or set clip_norm=1"
    )
