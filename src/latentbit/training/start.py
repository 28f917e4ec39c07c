"""The network that a training begins with: fresh weights, those of another run, or those of a file from elsewhere."""

from pathlib import Path

import torch
from torch import nn

from latentbit.checkpoints import checkpoint, foreign
from latentbit.checkpoints.foreign import Match
from latentbit.recipes import Recipe
from latentbit.recipes.build import build_model
from latentbit.runs import weights_at
from latentbit.runs.dataset_facts import DatasetFacts


def first_network(recipe: Recipe, facts: DatasetFacts) -> tuple[nn.Module, Match | None]:
    """The network of a recipe with the weights that its `start` names, and what of a foreign file fitted it.

    The seed of the recipe fixes all that is drawn. With a [first] table `start` is for the stage before.
    """
    torch.manual_seed(recipe.run.seed)
    network = build_model(recipe, facts.num_classes, facts.in_channels)
    if not recipe.model.start or recipe.first:
        return network, None
    path = weights_at(recipe.model.start)
    tensors = foreign.read(path)
    if checkpoint.fits(tensors, network) or any(".binarizer." in name for name in tensors):
        checkpoint.read_model(path, network)  # which names what does not fit
        return network, None
    found: list[Match] = []
    torch.manual_seed(recipe.run.seed)
    network = build_model(
        recipe,
        facts.num_classes,
        facts.in_channels,
        prepare=lambda real: found.append(foreign.take_(real, tensors, Path(path))),
    )
    return network, found[0]
