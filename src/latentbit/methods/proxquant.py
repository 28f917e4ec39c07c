"""ProxQuant: trains the real W, drawn to -1 and +1 by a proximal step; no straight-through estimator for weights.

    after a step, with p = |W|:  W <- sign(W) (1 + sign(p - 1) max(|p - 1| - lr * strength, 0)),  clipped to [-1, 1]
    strength = 1e-4 * epoch of 300;  at two thirds of training W becomes sign(W) and is frozen

Source: Bai et al., "ProxQuant", 2019, and its release. Confidence: high.
Exact: the proximal step, its strength over the epochs, sign and freezing at two thirds.
Differs: published with binary weights only and from a trained real network; the binary activations are ours.
    Evaluated with sign(W) at any time.
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed


class ProxQuant(Binarizer):
    strength_end: Annotated[float, Range(0)] = 1e-4 * 300
    """Strength of the proximal step at the end of training; it grows from 0 in proportion to the epoch."""
    freeze: Annotated[float, Range(0, 1)] = 200 / 300
    """Share of training after which W is sign(W) and no longer changes."""

    def setup(self, layer: BinaryLayer) -> None:
        self.strength = 0.0
        self.frozen = nn.Buffer(torch.zeros((), dtype=torch.bool), persistent=False)

    def weight(self, w: Tensor) -> Tensor:
        b = ops.sign(w.detach())
        return torch.where(self.frozen, b, w) if self.training else b

    def set_progress(self, progress: float) -> None:
        self.strength = self.strength_end * progress
        self.frozen.fill_(progress >= self.freeze)

    def after_step(self, w: Tensor, lr: float) -> None:
        b = ops.sign(w)
        if self.frozen:
            w.copy_(b)  # weight decay may have moved it
            return
        off = w.abs() - 1
        w.copy_(b * (1 + off.sign() * (off.abs() - lr * self.strength).clamp(min=0)))
        w.clamp_(-1, 1)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), torch.ones(len(w)), torch.zeros(1))
