import dataclasses

import pytest
import torch
from tiny_run import tiny_recipe

from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Method, Model, Recipe
from latentbit.recipes.build import build_model, build_objective
from latentbit.views import TwoView


def test_a_model_has_the_options_method_and_weights_of_its_recipe() -> None:
    chosen = Recipe(model=Model(options={"widths": [4, 8]}), method=Method("reactnet"))

    def changed(**values: bool) -> Recipe:
        return dataclasses.replace(chosen, model=dataclasses.replace(chosen.model, **values))

    layers = [m for m in build_model(chosen, 7, 2).modules() if isinstance(m, BINARY_LAYERS)]
    assert len(layers) == 8 and layers[-1].out_channels == 8
    assert {type(layer.binarizer).__name__ for layer in layers} == {"ReActNet"}
    real = build_model(changed(real_weights=True), 7, 2)
    assert {m.view for m in real.modules() if isinstance(m, BINARY_LAYERS)} == {"stale"}
    plain = build_model(changed(binarize=False), 7, 2)
    assert not any(isinstance(m, BINARY_LAYERS) for m in plain.modules())
    assert plain(torch.zeros(1, 2, 8, 8)).shape == (1, 7)


def test_an_option_set_by_override_reaches_every_layer(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path, "method=irnet", "method.t_min=0.1")
    layers = [m for m in build_model(chosen, 10, 1).modules() if isinstance(m, BINARY_LAYERS)]
    assert len(layers) == 8
    assert all(float(layer.binarizer.temperature.t) == pytest.approx(0.1) for layer in layers)


def test_every_loss_of_a_recipe_reaches_the_objective(tmp_path) -> None:
    losses = ("latent_weight=0.3", "center_weight=0.2", "attention_weight=3", "dim=5")
    chosen = tiny_recipe(tmp_path, *losses, "distribution_weight=2", "distribution_until=0.7")
    objective = build_objective(chosen.loss, build_model(chosen, 10, 1), 10)
    assert isinstance(objective.network, TwoView)
    assert (objective.latent_weight, objective.center_weight, objective.attention_weight) == (0.3, 0.2, 3)
    assert (objective.distribution_weight, objective.distribution_until) == (2, 0.7)
    assert len(objective.projection(torch.zeros(1, 16))[0]) == 5
