"""Feature reconstruction error of every binary layer: how far the two views are apart (paper, Eq. 10, Table 2).

    R_l = mean over images, channels and places of (Y~_l - Y_l)^2

Y_l is the output of binary layer l in the binary view, Y~_l in the latent view with renewed statistics. A sign is
larger than the value in [-1, 1] that it replaces, so that R_l also measures a factor which the BN behind the layer
takes out. What is left without it is the share of Y_l that no multiple of Y~_l explains:

    1 - <Y~_l, Y_l>^2 / (|Y~_l|^2 |Y_l|^2)

In the paper's notation (Eq. 4) Y_l is what BatchNorm and activation make of the layer's output, so R_l is measured
there as well: at the first activation behind the layer, else at its BatchNorm, wherever these are modules.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from latentbit import losses
from latentbit.data import Batch
from latentbit.layers import BINARY_LAYERS
from latentbit.models.activations import Maxout, RPReLU
from latentbit.views import TwoView

ACTIVATIONS = (
    *(
        nn.PReLU,
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.ELU,
        nn.GELU,
        nn.SiLU,
        nn.Hardswish,
        nn.Hardtanh,
        nn.Tanh,
    ),
    *(RPReLU, Maxout),
)


class Error(NamedTuple):
    """How far the outputs of one layer are apart in the two views."""

    absolute: float
    """R_l."""
    unexplained: float
    """Between 0, the same up to a factor, and 1, nothing in common."""
    activated: float | None
    """R_l behind BatchNorm and activation; None for a layer that has neither as a module."""


@torch.no_grad()
def errors(views: TwoView, batches: Iterable[Batch]) -> dict[str, Error]:
    """Errors by layer name in order of execution, over all batches; one batch is in memory at a time.

    `views` must have been made with collect_layers=True.
    """
    views.eval()
    names: list[str] = []
    sums = torch.zeros(0)
    activated: list[float | None] = []
    n = 0
    for images, _ in batches:
        names = names or execution_order(views.binary, images)
        with Activated(views.binary) as binary_side, Activated(views.latent) as latent_side:
            out = views(images)
        products = [
            torch.stack([(y * y).mean(), (w * w).mean(), (w * y).mean()])
            for y, w in zip(out.layers, out.latent_layers, strict=True)
        ]
        apart = losses.reconstruction(out.layers, out.latent_layers)
        batch = torch.cat([apart[:, None], torch.stack(products)], dim=1).double().cpu() * len(images)
        sums = sums + batch if n else batch
        activated = [
            None if y is None or w is None else (before or 0.0) + float((w - y).square().mean()) * len(images)
            for y, w, before in zip(
                binary_side.outputs, latent_side.outputs, activated or [None] * len(names), strict=True
            )
        ]
        n += len(images)
    return {
        name: Error(
            error / n,
            1 - both**2 / (binary * latent) if binary * latent else 1.0,
            None if behind is None else behind / n,
        )
        for name, (error, binary, latent, both), behind in zip(names, sums.tolist(), activated, strict=True)
    }


class Activated:
    """Catches what BatchNorm and activation make of the output of every binary layer, while it is entered."""

    def __init__(self, tree: nn.Module) -> None:
        self.tree = tree
        self.outputs: list[Tensor | None] = []
        """One for each call of a binary layer, in order."""
        self._activated = True  # nothing to wait for in front of the first layer

    def __enter__(self) -> "Activated":
        inside = {
            part
            for module in self.tree.modules()
            if isinstance(module, ACTIVATIONS)
            for part in module.children()
        }
        hooked = (*BINARY_LAYERS, *ACTIVATIONS, nn.modules.batchnorm._BatchNorm)
        modules = [m for m in self.tree.modules() if isinstance(m, hooked) and m not in inside]
        self._hooks = [module.register_forward_hook(self._catch) for module in modules]
        return self

    def _catch(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(module, BINARY_LAYERS):
            self.outputs.append(None)
            self._activated = False
        elif not self._activated:
            is_activation = isinstance(module, ACTIVATIONS)
            if (
                is_activation or self.outputs[-1] is None
            ):  # of two BatchNorms the first: the other is a shortcut's
                self.outputs[-1] = output
            self._activated = is_activation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()


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
