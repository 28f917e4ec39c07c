"""The latent view of averaged weights: a teacher that follows W slowly, and is steadier than W of the moment."""

from typing import Any

import torch
from torch import Tensor, nn

from latentbit.layers import BINARY_LAYERS
from latentbit.methods.parts import loops
from latentbit.views.two_view import twin


class AveragedView(nn.Module):
    """What the latent view computes, over a running average of the model's Parameters instead of these themselves.

    It begins with the parameters as they are, and `follow` takes `average <- decay * average + (1 - decay) *
    parameters`, which knows nothing of optimizers: the objective calls it in every training forward, and so once for
    every step of any loop. The average is part of the state dict. Methods' own parameters and buffers are those of the
    model, without an average; BatchNorm statistics are its own.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.view = twin(model, "latent", shared=())
        theirs = dict(model.named_parameters())
        self._pairs = [
            (mine, theirs[name]) for name, mine in self.view.named_parameters() if mine is not theirs[name]
        ]
        for mine, _ in self._pairs:
            mine.requires_grad_(False)
        self._leave()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._leave()

    def _leave(self) -> None:
        """Its layers take no steps, and an optimizer that is given their weights must not speak to them."""
        for layer in self.view.modules():
            if isinstance(layer, BINARY_LAYERS):
                loops.leave(layer)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Any:
        return self.view(x)

    @torch.no_grad()
    def begin(self) -> None:
        """Start anew from the parameters as they are: after other weights were loaded into the model."""
        for mine, theirs in self._pairs:
            mine.copy_(theirs)

    @torch.compiler.disable
    @torch.no_grad()
    def follow(self, parts: int = 1) -> None:
        """Go towards the parameters by a step, or by one of the `parts` of a step whose batch comes in as many."""
        for mine, theirs in self._pairs:
            mine.lerp_(theirs, 1 - self.decay ** (1 / parts))
