import dataclasses

import pytest
import torch
from tiny_run import same, tiny_recipe

from latentbit import data, runs
from latentbit.checkpoints.checkpoint import listed
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory, RunError
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.optimizers import create
from latentbit.training.schedule import learning_rate
from latentbit.training.state import TrainingState, TrainingStopped

CPU = torch.device("cpu")


def new_state(recipe: Recipe) -> TrainingState:
    return TrainingState(recipe, DatasetFacts.of(data.open(recipe.data)), CPU, 11)


def batches(n: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [
        (torch.randn(32, 1, 8, 8, generator=generator), torch.randint(10, (32,), generator=generator))
        for _ in range(n)
    ]


def test_a_step_is_forward_backward_and_the_optimizer_at_the_rate_of_the_schedule(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path, "latent=none", "lr=0.01", "warmup_epochs=1")
    state, twin = new_state(recipe), new_state(recipe)
    state.begin_epoch()
    twin.begin_epoch()
    optimizer = create(twin.objective, recipe.optim)
    for step, (images, labels) in enumerate(batches(3)):
        state.step(images, labels)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, 33, 0.01, 11, "cosine")
        assert state.lr == group["lr"]
        optimizer.zero_grad()
        twin.objective(images, labels).loss.backward()
        optimizer.step()
    assert same(dict(state.objective.state_dict()), dict(twin.objective.state_dict()))
    assert state.position.step == state.done == 3 and state.meter.read()["images"] == 96


def test_saved_and_restored_it_goes_on_as_if_nothing_had_happened(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path, "ema=0.9")
    run = RunDirectory.create(recipe, tmp_path / "run")
    whole = new_state(recipe)
    whole.begin_epoch()
    for batch in batches(6)[:3]:
        whole.step(*batch)
    whole.save(run)
    other = new_state(dataclasses.replace(recipe, run=dataclasses.replace(recipe.run)))
    assert other.restore(run) == [] and other.position.step == 3
    other.begin_epoch()
    for batch in batches(6)[3:]:
        whole.step(*batch)
        other.step(*batch)
    assert same(dict(whole.objective.state_dict()), dict(other.objective.state_dict()))
    assert same(dict(whole.deployed.state_dict()), dict(other.deployed.state_dict()))
    assert whole.meter.read() == other.meter.read()


def test_weights_after_a_loss_that_is_not_finite_are_never_saved(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path)
    run = RunDirectory.create(recipe, tmp_path / "run")
    state = new_state(recipe)
    state.begin_epoch()
    (images, labels), *more = batches(2)
    state.step(images * float("nan"), labels)
    state.step(*more[0])
    with pytest.raises(TrainingStopped, match=r"the loss is nan at epoch 1, step 1 \(task nan, latent nan\)"):
        state.save(run)
    assert listed(run.checkpoints) == []


def test_a_checkpoint_of_another_recipe_is_refused_with_its_keys(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path)
    run = RunDirectory.create(recipe, tmp_path / "run")
    new_state(recipe).save(run)
    other = tiny_recipe(tmp_path, "lr=0.1", "method=bireal")
    with pytest.raises(RunError, match="was changed since its last checkpoint: method.name, optim.lr"):
        new_state(other).restore(run)
    assert new_state(other).restore(run, accept_changes=True) == []


def test_no_checkpoint_is_a_beginning_and_only_broken_ones_are_an_error(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path)
    run = RunDirectory.create(recipe, tmp_path / "run")
    assert new_state(recipe).restore(run) == []
    new_state(recipe).save(run)
    listed(run.checkpoints)[0].write_bytes(b"")
    with pytest.raises(RunError, match="has no whole checkpoint left"):
        new_state(recipe).restore(runs.open(run.path))


@pytest.mark.parametrize("latent, largest", [("label_aware", 2), ("latent_ce", 1)])
def test_views_that_both_have_a_gradient_are_compiled_apart(tmp_path, monkeypatch, latent, largest) -> None:
    """One graph of both mixes their loops and is a third slower; the losses are the same either way."""
    views_in_graphs = []

    def count(graph, example_inputs):
        products = sum(node.target is torch.conv2d for node in graph.graph.nodes)
        views_in_graphs.append(products / layers)
        return graph.forward

    recipe = tiny_recipe(tmp_path, f"latent={latent}", "latent_weight=0.1")
    plain, state = new_state(recipe), new_state(recipe)
    layers = sum(isinstance(module, torch.nn.Conv2d) for module in state.model.modules())
    compiler = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module: compiler(module, backend=count))
    state.compiled = True
    for one in (plain, state):
        one.begin_epoch()
        for batch in batches(2):
            one.step(*batch)
    torch._dynamo.reset()
    assert sum(views_in_graphs) == 2 and max(views_in_graphs) == largest
    assert same(dict(state.objective.state_dict()), dict(plain.objective.state_dict()))
