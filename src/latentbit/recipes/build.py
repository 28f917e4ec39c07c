"""What a recipe names, built: its network and its objective."""

from collections.abc import Callable

from torch import nn

from latentbit import methods, models
from latentbit.binarize import binarize_
from latentbit.imports import find_import, is_import
from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective
from latentbit.recipes.recipe import Loss, Recipe


def build_model(
    recipe: Recipe,
    num_classes: int,
    in_channels: int,
    prepare: Callable[[nn.Module], object] | None = None,
) -> nn.Module:
    """The network of a recipe, binarized unless it asks for the real-valued twin.

    `prepare` gets the real network first: methods that take scales from the weights must see those they start with.
    """
    chosen = recipe.model
    model = models.create(chosen.network, num_classes=num_classes, in_channels=in_channels, **chosen.options)
    if prepare is not None:
        prepare(model)
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
        soft_weight=loss.soft_weight,
        label_smoothing=loss.label_smoothing,
        center_weight=loss.center_weight,
        center_variance=loss.center_variance,
        attention_weight=loss.attention_weight,
        distribution_weight=loss.distribution_weight,
        distribution_until=loss.distribution_until,
    )
