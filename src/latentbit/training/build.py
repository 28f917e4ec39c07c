"""What a recipe names: its network, its objective, the teacher; and the trained network of a run."""

from pathlib import Path

import torch
from torch import nn

from latentbit import methods, models
from latentbit.binarize import binarize_
from latentbit.data import Dataset
from latentbit.imports import find_import, is_import
from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective
from latentbit.recipes import Loss, Recipe
from latentbit.runs import checkpoint
from latentbit.runs.directory import RunDirectory


def build_model(recipe: Recipe, num_classes: int, in_channels: int) -> nn.Module:
    """The network of a recipe, binarized unless it asks for the real-valued twin."""
    chosen = recipe.model
    model = models.create(chosen.network, num_classes=num_classes, in_channels=in_channels, **chosen.options)
    if chosen.binarize:
        binarize_(model, methods.create(recipe.method.name, recipe.method.options))
    if chosen.real_weights:
        for layer in model.modules():
            if isinstance(layer, BINARY_LAYERS):
                layer.view = "stale"  # W in place of B, signs as activations
    return model


def build_objective(loss: Loss, model: nn.Module, num_classes: int) -> Objective:
    """The network with the losses of a recipe."""
    return Objective(
        model,
        num_classes=num_classes,
        latent=find_import(loss.latent) if is_import(loss.latent) else loss.latent,  # type: ignore[arg-type]
        latent_weight=loss.latent_weight,
        projection=loss.projection,
        dim=loss.dim,
        temperature=loss.temperature,
        label_smoothing=loss.label_smoothing,
        center_weight=loss.center_weight,
        center_variance=loss.center_variance,
        attention_weight=loss.attention_weight,
    )


def model_file(where: str) -> Path:
    """The weights meant by a run directory (its best) or by a file."""
    path = Path(where).expanduser()
    return path if path.is_file() else RunDirectory.open(path).best


def deployed_model(
    run: RunDirectory, recipe: Recipe, dataset: Dataset, device: torch.device, which: str = "best"
) -> nn.Module:
    """The trained network of a run, in eval mode."""
    model = build_model(recipe, dataset.num_classes, dataset.in_channels).to(device)
    checkpoint.read_model(run.path / f"{which}.safetensors", model)
    return model.eval()


def load_teacher(recipe: Recipe, dataset: Dataset, device: torch.device) -> nn.Module | None:
    """The frozen network of another run, whose soft labels replace the labels."""
    if not recipe.loss.teacher:
        return None
    path = model_file(recipe.loss.teacher)
    run = RunDirectory.open(path.parent)
    return deployed_model(run, run.recipe(), dataset, device, path.stem)
