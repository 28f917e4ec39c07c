"""An objective on many processes: what they exchange in a step, and nothing else.

Gradients are reduced while the backward still runs, in the memory that they are kept in. Left out are parameters that
no gradient reaches, and buffers that every process computes alike or that training does not read.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective
from latentbit.views import TwoView

if torch.distributed.is_available():
    # DDP imports it, and its functions take the group of the moment as their default and keep it. A group that is kept
    # outlives its end, and a thread of gloo that lets go of a tensor while Python exits aborts the process. So it is
    # imported while there is no group.
    import torch.distributed.nn


def parallel(objective: Objective) -> DistributedDataParallel:
    """The objective as one of many processes trains it."""
    freeze_unused_(objective)
    # Torch 2.13 has another name for it, and warns of the old one.
    known = inspect.signature(DistributedDataParallel).parameters
    buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {buffers: bool(foreign_buffers(objective))}
    return DistributedDataParallel(objective, gradient_as_bucket_view=True, **options)


def exchanged_bytes(objective: Objective, images: int, synced: bool) -> tuple[int, int]:
    """What a process brings to the exchanges of one step: gradients, and what losses and BatchNorm add up meanwhile.

    `images` are those of one process. Counted for the losses of latentbit; a loss of the user's own may exchange more.
    """
    gradients = sum(p.nbytes for p in objective.parameters() if p.requires_grad)
    classes, floats = objective.num_classes, 0
    if objective.latent == "instance":
        floats += 2  # a sum and its gradient
    elif objective.latent == "label_aware":
        floats += 2 * classes * (2 * objective.projection.dim + 1) + 2  # sums of both views for every class
    elif objective.latent == "label_contrastive":
        floats += images * (
            3 * objective.projection.dim + 4
        )  # features there and back, latent ones, labels twice
    if objective.center_weight > 0:
        floats += classes * (objective.centers.shape[1] + 1)
    if synced:
        floats += sum(_exchanged_by_batchnorm(objective))
    return gradients, 4 * floats


def _exchanged_by_batchnorm(objective: Objective) -> Iterator[int]:
    """Sums, their count and sums of squares; those of a view that is trained once more in the backward."""
    views = {"": 2}
    if isinstance(objective.network, TwoView):
        views = {"binary": 2, "latent": 2 if objective.network.latent_grad else 1}
    for view, times in views.items():
        for module in (objective.network.get_submodule(view)).modules():
            if isinstance(module, _BatchNorm):
                yield times * (2 * module.num_features + 1)


def foreign_buffers(module: nn.Module) -> list[str]:
    """Buffers that a process may fill by itself and read in the next step: only those of code that we do not know.

    BatchNorm reads its statistics in evaluation, before which all processes take those of rank 0. Centres are those of
    the joint batch; rotations, temperatures and scales follow from weights and progress, which are the same everywhere.
    """
    return [
        f"{path}.{name}"
        for path, owner in module.named_modules()
        if not isinstance(owner, _BatchNorm) and not type(owner).__module__.startswith("latentbit.")
        for name, _ in owner.named_buffers(recurse=False)
    ]


def freeze_unused_(objective: Objective) -> list[str]:
    """Take parameters of methods that this view does not compute with out of the exchange; gives their names.

    With real weights the scales of bits are such. DDP would wait for their gradients, or look for them in every step.
    """
    frozen = []
    for path, layer in objective.model.named_modules():
        if isinstance(layer, BINARY_LAYERS):
            named = {n: p for n, p in layer.binarizer.named_parameters() if p.requires_grad}
            for name in _unreached(layer, named):
                named[name].requires_grad_(False)
                frozen.append(f"{path}.binarizer.{name}")
    return frozen


def _unreached(layer: nn.Module, named: dict[str, nn.Parameter]) -> list[str]:
    """Parameters without a gradient in the product of this layer and the penalty of its method."""
    if not named:
        return []
    assert isinstance(layer, BINARY_LAYERS)
    device, weight = layer.weight.device, layer.weight
    # The smallest input that the layer takes: every padding and stride gives at least one output.
    taps = getattr(layer, "kernel_size", ())
    spread = getattr(layer, "dilation", (1,) * len(taps))
    sides = [d * (k - 1) + 1 for k, d in zip(taps, spread, strict=True)]
    x = torch.randn(2, weight.shape[1] * getattr(layer, "groups", 1), *sides, device=device)
    with torch.enable_grad():
        total = layer._product(x).sum()
        penalty = layer.binarizer.penalty(weight)
        total = total if penalty is None else total + penalty
        found = torch.autograd.grad(total, list(named.values()), allow_unused=True)
    return [name for name, gradient in zip(named, found, strict=True) if gradient is None]
