import dataclasses

import pytest
import torch
from tiny_run import tiny_recipe, weights

from latentbit import data
from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Method, Model, Recipe
from latentbit.runs.directory import RunDirectory
from latentbit.training.build import (
    build_model,
    build_objective,
    deployed_model,
    load_teacher,
    model_file,
)
from latentbit.training.train import train
from latentbit.views import TwoView


def test_a_model_has_the_options_method_and_weights_of_its_recipe() -> None:
    method = Method("irnet", {"t_min": 0.1})
    chosen = Model(network="resnet18_compact", options={"widths": [4, 8]})
    layers = [
        m
        for m in build_model(Recipe(model=chosen, method=method), 7, 2).modules()
        if isinstance(m, BINARY_LAYERS)
    ]
    assert len(layers) == 8 and layers[-1].out_channels == 8
    assert {str(layer.binarizer) for layer in layers} == {"irnet (t_min=0.1)"}
    real = build_model(Recipe(model=dataclasses.replace(chosen, real_weights=True)), 7, 2)
    assert {m.view for m in real.modules() if isinstance(m, BINARY_LAYERS)} == {"stale"}
    plain = build_model(Recipe(model=dataclasses.replace(chosen, binarize=False)), 7, 2)
    assert not any(isinstance(m, BINARY_LAYERS) for m in plain.modules())
    assert plain(torch.zeros(1, 2, 8, 8)).shape == (1, 7)


def test_every_loss_of_a_recipe_reaches_the_objective(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path, "latent_weight=0.3", "center_weight=0.2", "attention_weight=3", "dim=5")
    objective = build_objective(chosen.loss, build_model(chosen, 10, 1), 10)
    assert isinstance(objective.network, TwoView)
    assert (objective.latent_weight, objective.center_weight, objective.attention_weight) == (0.3, 0.2, 3)
    assert len(objective.projection(torch.zeros(1, 16))[0]) == 5


def test_the_network_of_a_run_is_found_by_its_folder_or_file(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path, "epochs=1", "latent=none")
    run, _ = train(chosen, out=tmp_path / "run", quiet=True)
    assert model_file(str(run.path)) == run.best and model_file(str(run.last)) == run.last
    cpu = torch.device("cpu")
    dataset = data.open(chosen.data, cpu)
    model = deployed_model(RunDirectory.open(run.path), chosen, dataset, cpu, "last")
    assert not model.training
    for name, value in weights(run.path).items():
        assert torch.equal(model.state_dict()[name], value)
    taught = dataclasses.replace(chosen, loss=dataclasses.replace(chosen.loss, teacher=str(run.path)))
    teacher = load_teacher(taught, dataset, cpu)
    images = torch.randn(2, 1, 8, 8)
    assert teacher is not None
    assert teacher(images).shape == (2, 10) and load_teacher(chosen, dataset, cpu) is None


def test_a_start_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(LatentbitError, match="nowhere"):
        model_file(str(tmp_path / "nowhere"))
