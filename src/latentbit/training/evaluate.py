"""The numbers of a binary network: B, W in its stale statistics, W-dagger recalibrated, and as tracked in training."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from latentbit.data import Dataset
from latentbit.distributed import rank, sum_over_processes, world_size
from latentbit.layers import BINARY_LAYERS
from latentbit.score import Score
from latentbit.training.layout import fastest_layout, in_layout
from latentbit.views import latent_view, recalibrate, stale_view
from latentbit.views.numbers import IN_TRAINING, Number

TOP5_FROM = 50
"""Classes from which the five likeliest are of interest."""


@dataclass(frozen=True)
class Scores:
    """B, W and W-dagger of one network; all but B are None for a network without binary layers."""

    binary: Score
    stale: Score | None = None
    latent: Score | None = None
    """Statistics collected anew."""
    tracked: Score | None = None
    """Statistics that a latent view tracked in training, where there is one."""

    def named(self) -> dict[Number, Score]:
        """The scores that this network has, under their names and in their order."""
        found = zip(IN_TRAINING, (self.binary, self.stale, self.latent, self.tracked), strict=True)
        return {number: score for number, score in found if score is not None}


@torch.no_grad()
def score(view: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> Score:
    """Top-1 of one view; under torch.distributed over the batches of all processes. Modes are put back."""
    training = view.training
    view.eval()
    correct = total = in_top5 = n_classes = 0
    for images, labels in batches:
        logits = view(images)
        n_classes = logits.shape[1]
        correct += int((logits.argmax(1) == labels).sum())
        if n_classes >= TOP5_FROM:
            in_top5 += int((logits.topk(5).indices == labels[:, None]).sum())
        total += len(labels)
    view.train(training)
    device = next(view.parameters()).device
    counts = torch.tensor([correct, total, in_top5], device=device)
    correct, total, in_top5 = sum_over_processes(counts).tolist()
    return Score(correct, total, in_top5 if n_classes >= TOP5_FROM else None)


def scores(
    model: nn.Module,
    data: Dataset,
    *,
    tracked: nn.Module | None = None,
    batch_size: int = 256,
    recalibrate_batches: int = 20,
    only_binary: bool = False,
) -> Scores:
    """All numbers on the test images, or B alone. `tracked` is a latent view with statistics of its training."""
    layout = fastest_layout(model, (data.in_channels, data.image_size, data.image_size))

    def test() -> Iterable[tuple[Tensor, Tensor]]:
        batches = data.test_batches(batch_size, rank(), world_size())
        return ((in_layout(images, layout), labels) for images, labels in batches)

    binary = score(model, test())
    if only_binary or not any(isinstance(module, BINARY_LAYERS) for module in model.modules()):
        return Scores(binary)
    latent = latent_view(model)
    # Every process sees the same batches, so that all end with the same statistics.
    batches = data.statistics_batches(batch_size, recalibrate_batches)
    recalibrate(latent, (in_layout(images, layout) for images, _ in batches))
    found = None if tracked is None else score(tracked, test())
    return Scores(binary, score(stale_view(model), test()), score(latent, test()), found)
