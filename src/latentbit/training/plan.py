"""What a training would do, without doing it: `latentbit train RECIPE --dry-run`."""

import time

from latentbit import data
from latentbit.data import Dataset
from latentbit.distributed.device import choose_device
from latentbit.imports import without_folder
from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Recipe
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.memory import keep_freed_memory
from latentbit.training.state import TrainingState

TIMED = 3
"""Steps that are made to say how long one takes; the first is left out."""


def seconds_of_steps(recipe: Recipe) -> float:
    """About how long the steps of a training take here, uncompiled, from a few that are made and thrown away."""
    device = choose_device(recipe.run.device)
    dataset = data.open(recipe.data, device)
    steps = dataset.steps_per_epoch(recipe.data.batch_size)
    state = TrainingState(recipe, DatasetFacts.of(dataset), device, steps)
    return _seconds_of_step(state, dataset) * state.total_steps


def _seconds_of_step(state: TrainingState, dataset: Dataset) -> float:
    """The least of a few: what else runs on the machine only adds to it."""
    recipe = state.recipe
    state.begin_epoch()
    seconds = []
    for i, (images, labels) in enumerate(
        dataset.train_batches(0, batch_size=recipe.data.batch_size, seed=recipe.run.seed)
    ):
        begun = time.perf_counter()
        state.step(images, labels)
        state.meter.read_latest()  # waits for the device
        seconds.append(time.perf_counter() - begun)
        if i + 1 == TIMED:
            break
    return min(seconds[1:] or seconds)


def plan(recipe: Recipe) -> list[str]:
    """Lines of "key  value". Opens the data set, builds the network and makes a few steps; writes nothing."""
    keep_freed_memory()
    device = choose_device(recipe.run.device)
    dataset = data.open(recipe.data, device)
    steps = dataset.steps_per_epoch(recipe.data.batch_size)
    state = TrainingState(recipe, DatasetFacts.of(dataset), device, steps)
    least = _seconds_of_step(state, dataset)
    binary = sum(isinstance(module, BINARY_LAYERS) for module in state.model.modules())
    parameters = sum(p.numel() for p in state.model.parameters())
    held = f", {dataset.n_val} of them for choosing the best epoch" if dataset.n_val else ""
    lines = {
        "recipe": recipe.name,
        "data": f"{dataset.name}: {len(dataset.train):,} training images{held}, {len(dataset.test):,} test images",
        "network": f"{without_folder(recipe.model.network)}, {parameters:,} parameters, {binary} binary layers",
        "method": f"{without_folder(recipe.method.name)}, latent loss {without_folder(recipe.loss.latent)}"
        if binary
        else "none, all layers real",
        "steps": f"{recipe.optim.epochs} epochs of {steps} steps of {recipe.data.batch_size} images on {device}",
        "time": f"about {duration(least * state.total_steps)} for the steps, {1000 * least:.0f} ms each, not compiled",
    }
    return [f"{key:<9} {value}" for key, value in lines.items()]


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
