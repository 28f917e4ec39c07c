"""A run directory as training leaves it, without the training: a small network on the digits."""

from pathlib import Path

import torch

from latentbit import data, recipes
from latentbit.recipes.build import build_model
from latentbit.runs import RunDirectory, checkpoint
from latentbit.runs.dataset_facts import DatasetFacts


def make(path: Path, *changes: str) -> Path:
    """A compact ResNet with untrained weights and statistics of digits-like noise, saved as best and last."""
    chosen = recipes.load("cifar10_resnet18_compact", ["dataset=digits", "options={widths=[4, 8]}", *changes])
    run = RunDirectory.create(chosen, path, DatasetFacts.of(data.open(chosen.data)))
    torch.manual_seed(0)
    model = build_model(chosen, num_classes=10, in_channels=1)
    for _ in range(5):
        model(torch.randn(32, 1, 8, 8))
    model.get_parameter("fc.weight").data.mul_(100)
    checkpoint.write_model(run.best, model, {"epoch": 1})
    checkpoint.write_model(run.last, model, {"epoch": 1})
    return path
