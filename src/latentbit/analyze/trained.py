"""A trained run opened for looking at: its network, the latent view with renewed statistics, and its data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from latentbit import runs
from latentbit.checkpoints import checkpoint
from latentbit.data import Batch, Dataset
from latentbit.distributed.device import choose_device
from latentbit.errors import LatentbitError
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory
from latentbit.views import TwoView, recalibrate

Track = Callable[[Iterable[Batch], str, int], Iterable[Batch]]
"""Shows progress while batches pass through: (batches, what is being done, number of images)."""


class NothingToAnalyze(LatentbitError):
    """A run that does not have what was asked of it."""


def silent(batches: Iterable[Batch], what: str, total: int) -> Iterable[Batch]:
    """A Track that shows nothing."""
    return batches


@dataclass(frozen=True)
class Trained:
    """One run's network in eval mode; `views` is None for a network without binary layers."""

    directory: RunDirectory
    recipe: Recipe
    dataset: Dataset
    model: torch.nn.Module
    views: TwoView | None
    which: str
    epoch: int
    device: torch.device

    @property
    def n_test(self) -> int:
        return len(self.dataset.test)

    @property
    def batch_size(self) -> int:
        """Small enough to hold the outputs of every layer of both views."""
        return 128 if self.dataset.image_size <= 64 else 32

    def test(self, track: Track = silent, what: str = "") -> Iterable[Batch]:
        """Every test image once."""
        return track(self.dataset.test_batches(self.batch_size), what, self.n_test)

    def sample(self, n: int, track: Track = silent, what: str = "") -> Iterator[Batch]:
        """About `n` test images, evenly spread over the set, so that sorted sets give every class."""
        return evenly_spaced(self.test(track, what), self.n_test, n)


def open_run(path: Path, which: str | None = None, device: str = "auto", track: Track = silent) -> Trained:
    """Load the best or last network of a run and renew the statistics of its latent view."""
    run, where = runs.open(path), choose_device(device)
    which = run.chosen(which)
    recipe, facts = run.recipe(), checkpoint.read_facts(run.weights(which))
    views = run.views(which, where)
    model = run.network(which, where) if views is None else views.binary
    dataset = run.dataset(where)
    if views is not None:
        batch_size, limit = recipe.data.batch_size, recipe.run.recalibrate_batches
        batches = track(
            dataset.statistics_batches(batch_size, limit), "renewing statistics", batch_size * limit
        )
        recalibrate(views.latent, (images for images, _ in batches))
    return Trained(run, recipe, dataset, model, views, which, int(facts.get("epoch", 0)), where)


def evenly_spaced(batches: Iterable[Batch], total: int, n: int) -> Iterator[Batch]:
    """Image i of `total` passes if its share of `n` begins there: n images at even distances."""
    seen = 0
    for images, labels in batches:
        i = torch.arange(seen, seen + len(labels))
        seen += len(labels)
        chosen = ((i + 1) * n // total > i * n // total).to(labels.device) if n < total else None
        if chosen is None:
            yield images, labels
        elif chosen.any():
            yield images[chosen], labels[chosen]
