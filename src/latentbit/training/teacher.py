"""A network that is asked and never trained: its soft labels and, for attention matching, its maps."""

import torch
from torch import Tensor, nn

from latentbit import runs
from latentbit.recipes import Recipe
from latentbit.views import stage_tap


class Teacher:
    """`logits, maps = teacher(images)`; maps at the ends of its stages if `with_maps`, else none."""

    def __init__(self, network: nn.Module, with_maps: bool) -> None:
        self.network = network.eval().requires_grad_(False)
        self.tap = stage_tap(network) if with_maps else None

    @torch.no_grad()
    def __call__(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        if self.tap is None:
            return self.network(images), []
        self.tap.arm()
        return self.network(images), self.tap.take()


def teacher_of(recipe: Recipe, device: torch.device) -> nn.Module | None:
    """The network of the run that a recipe names as its teacher."""
    if not recipe.loss.teacher:
        return None
    path = runs.weights_at(recipe.loss.teacher)
    return runs.open(path.parent).network(path.stem, device)
