"""What a training would do and cost, without doing it: `latentbit train RECIPE --dry-run`."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from latentbit import data
from latentbit.data import Dataset
from latentbit.distributed.device import choose_device
from latentbit.imports import without_folder
from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Recipe, first_stage
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training import forecast
from latentbit.training.epoch import latent_every
from latentbit.training.forecast import Work, Workers
from latentbit.training.measure import (
    HEIGHT,
    WIDTH,
    Memory,
    Speed,
    generated,
    is_absent,
    measure_input,
    measure_memory,
    measure_speed,
)
from latentbit.training.memory import keep_freed_memory
from latentbit.training.parallel import exchanged_bytes
from latentbit.training.state import TrainingState, check_batch

IMAGENET = (1_281_167, 50_000, 1000)
"""Training images, test images and classes that a folder is taken to have where it is not at hand."""


@dataclass(frozen=True)
class Devices:
    """Machines that are not this one, as a user knows them."""

    count: int
    speed: float = 0.0
    """Images per second of one; 0 takes what was measured here."""
    bandwidth: float = 10.0
    """Gbit/s between two of them."""


def seconds_of_steps(recipe: Recipe) -> float:
    """About how long the steps of a training take here, uncompiled, from a few that are made and thrown away."""
    device = choose_device(recipe.run.device)
    with _data(recipe, device) as (_, facts, steps, _n_val):
        state = _state(recipe, facts, device, steps)
        return recipe.data.batch_size / measure_speed(state, facts, _at_once(recipe)).step * state.total_steps


def _state(recipe: Recipe, facts: DatasetFacts, device: torch.device, steps: int) -> TrainingState:
    """To measure with: its steps are not divided into parts."""
    check_batch(recipe)
    return TrainingState(replace(recipe, optim=replace(recipe.optim, accumulate=1)), facts, device, steps)


def _at_once(recipe: Recipe, devices: int = 1) -> int:
    """Images that one device computes at once."""
    return -(-recipe.data.batch_size // (devices * recipe.optim.accumulate))


@contextlib.contextmanager
def _data(recipe: Recipe, device: torch.device) -> Iterator[tuple[Dataset, DatasetFacts, int, int]]:
    """The data set, its facts, the steps of an epoch and the images that are kept apart.

    Pictures that are generated stand for a folder that is not here, which is taken to be ImageNet.
    """
    if not is_absent(recipe.data):
        dataset = data.open(recipe.data, device)
        steps = dataset.steps_per_epoch(recipe.data.batch_size)
        yield dataset, DatasetFacts.of(dataset), steps, dataset.n_val
        return
    n_train, n_test, n_classes = IMAGENET
    with generated(recipe.data, device) as dataset:
        facts = replace(
            DatasetFacts.of(dataset),
            n_train=n_train,
            n_test=n_test,
            classes=tuple(str(i) for i in range(n_classes)),
        )
        n_val = round(recipe.data.val * n_train)
        yield dataset, facts, (n_train - n_val) // recipe.data.batch_size, n_val


def plan(
    recipe: Recipe, devices: Devices | None = None, say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """Lines of "key  value". Opens the data set, builds the network and makes a few steps; writes nothing."""
    keep_freed_memory()
    device = choose_device(recipe.run.device)
    with _data(recipe, device) as (dataset, facts, steps, n_val):
        state = _state(recipe, facts, device, steps)
        say("measuring a few steps, their memory and the input: some seconds")
        speed = measure_speed(state, facts, _at_once(recipe))
        memory = measure_memory(state, facts)
        decoded = measure_input(dataset, recipe.data.batch_size, recipe.run.seed)
    sent = exchanged_bytes(state.objective, _at_once(recipe, 1), recipe.run.sync_batchnorm)
    lines = {
        "recipe": recipe.name,
        "data": _data_line(recipe, facts, n_val),
        **_network_lines(recipe, state),
        "steps": f"{_epochs(recipe)} of {steps} steps of {recipe.data.batch_size} images on {device}",
        "input": _input_line(recipe, decoded),
        "step": f"{_rate(speed.step)}, {speed.batch} at once on {_here(device)}, not compiled; "
        f"{_rate(speed.forward)} in evaluation",
        "memory": _memory_line(memory, _at_once(recipe)),
        "sent": f"{_size(sent[0])} of gradients that every process brings to the all-reduce of a step, "
        f"{_size(sent[1])} of losses" + (" and BatchNorm" if recipe.run.sync_batchnorm else ""),
        "time": f"about {duration(_seconds_here(recipe, facts, steps, speed, decoded, device))} here, evaluations "
        f"included{_busy()}",
    }
    if devices is not None:
        work = Work(recipe.data.batch_size, *sent)
        lines["devices"] = _devices_line(recipe, facts, steps, speed, decoded, work, devices)
        lines["each"] = _memory_line(memory, _at_once(recipe, devices.count))
    return [f"{key:<9} {value}" for key, value in lines.items()]


def _data_line(recipe: Recipe, facts: DatasetFacts, n_val: int) -> str:
    held = f", {n_val:,} of them for choosing the best epoch" if n_val else ""
    counts = f"{facts.n_train:,} training images{held}, {facts.n_test:,} test images"
    if not is_absent(recipe.data):
        return f"{facts.name}: {counts}"
    where = f"root={recipe.data.root} is" if recipe.data.root else "its folder (root=DIR) is"
    pictures = f"input is measured on generated JPEGs of {WIDTH} x {HEIGHT}"
    return f"{where} not here. Counted as ImageNet: {counts}; {pictures}"


def _network_lines(recipe: Recipe, state: TrainingState) -> dict[str, str]:
    binary = sum(isinstance(module, BINARY_LAYERS) for module in state.model.modules())
    parameters = sum(p.numel() for p in state.model.parameters())
    method = f"{without_folder(recipe.method.name)}, latent loss {without_folder(recipe.loss.latent)}"
    return {
        "network": f"{without_folder(recipe.model.network)}, {parameters:,} parameters, {binary} binary layers",
        "method": method if binary else "none, all layers real",
    }


def _epochs(recipe: Recipe) -> str:
    if not recipe.first:
        return f"{recipe.optim.epochs} epochs"
    return f"{first_stage(recipe).optim.epochs} + {recipe.optim.epochs} epochs in two stages"


def _input_line(recipe: Recipe, decoded: float) -> str:
    if recipe.data.dataset in ("digits", "cifar10", "cifar100"):
        return f"{_rate(decoded)}, from memory"
    workers, cores = recipe.data.workers, os.cpu_count() or 1
    by = f"{workers} worker{'s' if workers > 1 else ''}" if workers else "the training process"
    return f"{_rate(decoded)} by {by} on {cores} cores, {_rate(_per_core(recipe, decoded))} for each core"


def _per_core(recipe: Recipe, decoded: float) -> float:
    return decoded / min(max(1, recipe.data.workers), os.cpu_count() or 1)


def _memory_line(memory: Memory, images: int) -> str:
    parts = {
        "weights": memory.weights,
        "gradients": memory.gradients,
        "optimizer": memory.optimizer,
        "running average": memory.average,
    }
    named = ", ".join(f"{name} {_size(size)}" for name, size in parts.items() if size)
    return (
        f"{_size(memory.total(images))} with {images} images at once: {named}, activations {_size(memory.activations)} "
        "an image (from 2 and 4)"
    )


def _here(device: torch.device) -> str:
    threads = torch.get_num_threads()
    return f"{threads} thread{'s' if threads > 1 else ''}" if device.type == "cpu" else str(device)


def _seconds_here(
    recipe: Recipe, facts: DatasetFacts, steps: int, speed: Speed, decoded: float, device: torch.device
) -> float:
    """On a CPU decoding and computing share the cores; elsewhere the slower of the two counts."""

    def both(n: float, compute: float) -> float:
        return n / decoded + n / compute if device.type == "cpu" else max(n / decoded, n / compute)

    images = recipe.data.batch_size * steps
    return sum(
        both(stage.optim.epochs * images, speed.step) + both(_evaluated(stage, facts), speed.forward)
        for stage in _stages(recipe)
    )


def _stages(recipe: Recipe) -> list[Recipe]:
    return [*([first_stage(recipe)] if recipe.first else []), recipe]


def _evaluated(recipe: Recipe, facts: DatasetFacts) -> float:
    """Images that all evaluations of a run see: B, and where they are due W and W-dagger with its statistics."""
    epochs = range(1, recipe.optim.epochs + 1)
    due = [e for e in epochs if e % recipe.run.eval_every == 0 or e == recipe.optim.epochs]
    images = len(due) * (facts.n_test + recipe.data.val * facts.n_train)
    if recipe.model.binarize:
        all_three = sum(e % latent_every(recipe) == 0 or e == recipe.optim.epochs for e in due)
        images += all_three * (2 * facts.n_test + recipe.run.recalibrate_batches * recipe.data.batch_size)
    return images


def _devices_line(
    recipe: Recipe,
    facts: DatasetFacts,
    steps: int,
    speed: Speed,
    decoded: float,
    work: Work,
    devices: Devices,
) -> str:
    each = devices.speed or speed.step
    workers = Workers(devices.count, each, math.inf, devices.bandwidth * 1e9 / 8)
    step = forecast.step(work, workers)
    rate = work.images / step.seconds
    # Evaluations are divided too, at the ratio of forward to step that was measured here.
    forward = devices.count * each * speed.forward / speed.step
    seconds = sum(
        stage.optim.epochs * steps * step.seconds + _evaluated(stage, facts) / forward
        for stage in _stages(recipe)
    )
    shares = (
        "" if devices.count == 1 else f", {step.waited / step.seconds:.0%} of it waits for the all-reduce"
    )
    cores = math.ceil(rate / _per_core(recipe, decoded))
    return (
        f"{devices.count} of {_rate(each)} each, {devices.bandwidth:g} Gbit/s: {1000 * step.seconds:,.0f} ms a "
        f"step{shares}; about {duration(seconds)} if the input brings {_rate(rate)}, which takes {cores:,} "
        f"{'core' if cores == 1 else 'cores'} like those here"
    )


def _busy() -> str:
    """A word about other work on this machine: it makes all that is measured slower."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"; the machine is busy (load {load:.1f} on {cores} cores), idle it is faster" if load > cores else ""
    )


def _rate(images: float) -> str:
    return f"{images:,.0f} images/s" if images >= 10 else f"{images:.2g} images/s"


def _size(n: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n:.0f} bytes"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.1f} hours" if seconds < 100 * 3600 else f"{seconds / 3600:,.0f} hours"
