"""Feature reconstruction error of every binary layer: how far the two views are apart (paper, Eq. 10, Table 2).

    R_l = mean over images, channels and places of (Y~_l - Y_l)^2

Y_l is the output of binary layer l in the binary view, Y~_l in the latent view with renewed statistics. A sign is
larger than the value in [-1, 1] that it replaces, so that R_l also measures a factor which the BN behind the layer
takes out. What is left without it is the share of Y_l that no multiple of Y~_l explains:

    1 - <Y~_l, Y_l>^2 / (|Y~_l|^2 |Y_l|^2)
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from latentbit import losses
from latentbit.data import Batch
from latentbit.layers import BINARY_LAYERS
from latentbit.views import TwoView


class Error(NamedTuple):
    """How far the outputs of one layer are apart in the two views."""

    absolute: float
    """R_l."""
    unexplained: float
    """Between 0, the same up to a factor, and 1, nothing in common."""


@torch.no_grad()
def errors(views: TwoView, batches: Iterable[Batch]) -> dict[str, Error]:
    """Errors by layer name in order of execution, over all batches; one batch is in memory at a time.

    `views` must have been made with collect_layers=True.
    """
    views.eval()
    names: list[str] = []
    sums = torch.zeros(0)
    n = 0
    for images, _ in batches:
        names = names or execution_order(views.binary, images)
        out = views(images)
        products = [
            torch.stack([(y * y).mean(), (w * w).mean(), (w * y).mean()])
            for y, w in zip(out.layers, out.latent_layers, strict=True)
        ]
        apart = losses.reconstruction(out.layers, out.latent_layers)
        batch = torch.cat([apart[:, None], torch.stack(products)], dim=1).double().cpu() * len(images)
        sums = sums + batch if n else batch
        n += len(images)
    return {
        name: Error(error / n, 1 - both**2 / (binary * latent) if binary * latent else 1.0)
        for name, (error, binary, latent, both) in zip(names, sums.tolist(), strict=True)
    }


def execution_order(tree: nn.Module, images: Tensor) -> list[str]:
    """Names of the binary layers as a forward reaches them; a layer used twice is there twice, numbered."""
    names = {module: name for name, module in tree.named_modules() if isinstance(module, BINARY_LAYERS)}
    order: list[str] = []

    def note(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        used = sum(name.partition("#")[0] == names[module] for name in order)  # type: ignore[index]
        order.append(names[module] + (f"#{used + 1}" if used else ""))  # type: ignore[index]

    hooks = [module.register_forward_pre_hook(note) for module in names]
    tree(images[:1])
    for hook in hooks:
        hook.remove()
    return order
