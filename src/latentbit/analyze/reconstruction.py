"""Feature reconstruction error of every binary layer: how far the two views are apart (paper, Eq. 8, Table 2).

    R_l = mean over images, channels and places of (Y~_l - Y_l)^2

Y_l is the output of binary layer l in the binary view, Y~_l in the latent view with renewed statistics.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from latentbit import losses
from latentbit.data import Batch
from latentbit.layers import BINARY_LAYERS
from latentbit.views import TwoView


@torch.no_grad()
def errors(views: TwoView, batches: Iterable[Batch]) -> dict[str, float]:
    """R_l by layer name in order of execution, over all batches; one batch is in memory at a time.

    `views` must have been made with collect_layers=True.
    """
    views.eval()
    names: list[str] = []
    totals: list[float] = []
    n = 0
    for images, _ in batches:
        names = names or execution_order(views.binary, images)
        out = views(images)
        batch = (losses.reconstruction(out.layers, out.latent_layers).double() * len(images)).tolist()
        totals = [a + b for a, b in zip(totals, batch, strict=True)] if totals else batch
        n += len(images)
    return {name: total / n for name, total in zip(names, totals, strict=True)}


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
