"""BatchNorm statistics collected anew for one view, which gives W its accuracy back."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from latentbit.views.taps import ViewError


@torch.no_grad()
def recalibrate(view: nn.Module, batches: Iterable[Tensor]) -> int:
    """Collect the BatchNorm statistics of `view` anew, as the plain average over `batches`; returns their number.

    With it W regains its accuracy (W-dagger of the paper). Only BatchNorm learns: dropout stays off, and
    momentum and training modes are put back even if a batch fails.
    """
    norms = [m for m in view.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    n_batches = 0
    with _collecting(view, norms):
        for batch in batches:
            view(batch)
            n_batches += 1
    if norms and n_batches == 0:
        raise ViewError("recalibrate got no batches: the statistics are now reset and unusable")
    return n_batches


@contextmanager
def _collecting(view: nn.Module, norms: list[_BatchNorm]) -> Iterator[None]:
    training = {module: module.training for module in view.modules()}
    momentum = {norm: norm.momentum for norm in norms}
    try:
        view.eval()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # cumulative average instead of an exponential one
            norm.train()
        yield
    finally:
        for module, mode in training.items():
            module.training = mode
        for norm, value in momentum.items():
            norm.momentum = value
