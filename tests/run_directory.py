"""A run directory as training leaves it, without the training: a small network on the digits."""

from pathlib import Path

import torch

from latentbit import data, recipes
from latentbit.checkpoints import checkpoint
from latentbit.recipes.build import build_model
from latentbit.runs import RunDirectory
from latentbit.runs.dataset_facts import DatasetFacts


def make(path: Path, *changes: str, facts: DatasetFacts | None = None) -> Path:
    """A compact ResNet with untrained weights and statistics of digits-like noise, saved as best and last.

    With `facts` the data set itself is not needed.
    """
    chosen = recipes.load(
        "cifar10_resnet18_compact_label_aware", ["dataset=digits", "options={widths=[4, 8]}", *changes]
    )
    facts = facts or DatasetFacts.of(data.open(chosen.data))
    run = RunDirectory.create(chosen, path, facts)
    torch.manual_seed(0)
    model = build_model(chosen, facts.num_classes, facts.in_channels)
    for _ in range(5):
        model(torch.randn(32, *facts.input_shape))
    model.get_parameter("fc.weight").data.mul_(100)
    checkpoint.write_model(run.best, model, {"epoch": 1})
    checkpoint.write_model(run.last, model, {"epoch": 1})
    return path


def make_without_data(path: Path) -> Path:
    """A run on CIFAR-10 as it looks where CIFAR-10 is not: copied from the machine that trained it."""
    classes = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
    mean, std = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
    facts = DatasetFacts("cifar10", classes, 3, 32, mean, std, 50_000, 10_000, "sha256:elsewhere")
    return make(path, "dataset=cifar10", facts=facts)
