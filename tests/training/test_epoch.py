import torch
from tiny_run import tiny_recipe

from latentbit import data
from latentbit.checkpoints.checkpoint import read_facts
from latentbit.runs import RunDirectory
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.board import Board
from latentbit.training.display import Display
from latentbit.training.epoch import close_epoch
from latentbit.training.state import TrainingState
from latentbit.training.train import train


def test_an_epoch_is_scored_logged_and_kept_and_the_next_one_begins(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path, "eval_every=2", "epochs=3")
    dataset = data.open(recipe.data)
    run = RunDirectory.create(recipe, tmp_path / "run")
    state = TrainingState(recipe, DatasetFacts.of(dataset), torch.device("cpu"), 2)
    results = []
    for epoch in range(3):
        state.begin_epoch()
        for images, labels in list(dataset.train_batches(epoch, batch_size=128, seed=0))[:2]:
            state.step(images, labels)
        results.append(close_epoch(run, state, dataset, Display(quiet=True), Board(run.path, 0, False)))
        assert (state.position.epoch, state.position.step, state.position.seconds) == (epoch + 1, 0, 0.0)
        assert read_facts(run.last)["epoch"] == epoch + 1
    assert [result is None for result in results] == [True, False, False]  # every second one, and the last
    entries = run.metrics()
    assert [entry["epoch"] for entry in entries] == [1, 2, 3] and "accuracy_b" not in entries[0]
    assert entries[1]["accuracy_b"] == results[1].binary.accuracy
    best = max(entries[1:], key=lambda entry: entry["accuracy_b"])
    assert read_facts(run.best)["accuracy_b"] == best["accuracy_b"] == state.position.best


def test_validation_images_choose_the_best_epoch_and_the_test_does_not(tmp_path) -> None:
    run, _ = train(
        tiny_recipe(tmp_path, "val=0.1", "epochs=3", "latent=none"), out=tmp_path / "run", quiet=True
    )
    entries = run.metrics()
    chosen = max(entries, key=lambda entry: entry["accuracy_b_val"])
    facts = read_facts(run.best)
    assert facts["epoch"] == chosen["epoch"] and facts["accuracy_b"] == chosen["accuracy_b"]
    assert run.weights() == run.best and run.chosen("last") == "last"
    assert run.epoch_in_words() == f"epoch {chosen['epoch']} of 3, best on 143 validation images"
    assert run.epoch_in_words("last") == "epoch 3 of 3, the last"


def test_without_validation_images_the_last_epoch_is_taken_and_the_best_is_doubted(tmp_path) -> None:
    run, _ = train(tiny_recipe(tmp_path, "epochs=1", "latent=none"), out=tmp_path / "run", quiet=True)
    assert run.weights() == run.last
    assert run.epoch_in_words("best") == (
        "epoch 1 of 1, best on the test images, so its accuracy there is too good"
    )
