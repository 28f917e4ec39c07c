"""The end of an epoch: score it, log it, keep its network."""

from latentbit import distributed
from latentbit.checkpoints import checkpoint
from latentbit.checkpoints.checkpoint import Position
from latentbit.data import Dataset
from latentbit.projection import spread
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory
from latentbit.training import flips
from latentbit.training.board import Board
from latentbit.training.display import Display
from latentbit.training.evaluate import Scores, score, scores
from latentbit.training.metrics import epoch_entry, score_entry
from latentbit.training.state import TrainingState
from latentbit.views import TwoView
from latentbit.views.numbers import CHOOSING, B


def close_epoch(
    run: RunDirectory, state: TrainingState, dataset: Dataset, display: Display, board: Board
) -> Scores | None:
    """All steps of an epoch are done: its line in metrics.jsonl, its networks, the position of the next one."""
    recipe, position, epoch = state.recipe, state.position, state.position.epoch
    distributed.take_buffers_of_rank_0(state.objective)
    sums = state.meter.read()
    entry = epoch_entry(epoch, sums, position.seconds, state.steps_per_epoch, state.lr, state.device)
    entry["flip_rate"] = flips.flip_rate(state.signs, flips.signs(state.model))
    if state.projected is not None and state.labels is not None:
        entry["spread"] = spread(state.projected.float(), state.labels, dataset.num_classes)
    result, last = None, epoch + 1 == recipe.optim.epochs
    if last or (epoch + 1) % recipe.run.eval_every == 0:
        display.evaluating()
        network = state.objective.network
        tracked = network.latent if isinstance(network, TwoView) and state.average is None else None
        result = scores(
            state.deployed,
            dataset,
            tracked=tracked,
            batch_size=recipe.data.batch_size,
            recalibrate_batches=recipe.run.recalibrate_batches,
            only_binary=not last and (epoch + 1) % latent_every(recipe) > 0,
        )
        entry |= score_entry(result)
        if dataset.n_val:
            images = dataset.val_batches(recipe.data.batch_size, distributed.rank(), distributed.world_size())
            entry[CHOOSING] = score(state.deployed, images).accuracy
    # Without images to choose by, the best epoch is that of the test images, and nobody takes it unasked.
    accuracy = entry.get(CHOOSING if dataset.n_val else B.metric, -1.0)
    if distributed.rank() == 0:
        if notice := run.log(entry):
            display.say(notice)
        chosen_on = f"{dataset.n_val} validation images" if dataset.n_val else "the test images"
        facts = {"recipe": recipe.name, "epoch": epoch + 1, "chosen_on": chosen_on} | {
            key: value for key, value in entry.items() if key.startswith("accuracy")
        }
        checkpoint.write_model(run.last, state.deployed, facts)
        if accuracy > position.best:
            checkpoint.write_model(run.best, state.deployed, facts)
    state.position = Position(epoch + 1, 0, max(position.best, accuracy))
    display.epoch(entry)
    board.log(entry)
    return result


def latent_every(recipe: Recipe) -> int:
    """Epochs from one evaluation of W and W-dagger to the next: two thirds of what an evaluation costs."""
    return recipe.run.latent_eval_every or max(1, recipe.optim.epochs // 10) * recipe.run.eval_every
