"""ReSTE: the gradient of a power function that grows from the identity towards sign as training goes on.

    B = mean|W| sign(W), one mean for the layer, gradient flows through it;  for weights and activations alike
    d sign/dx = |x|^(1/o - 1) / o  where 0.1 < |x| <= 1.5,  0.1^(1/o) / 0.1  up to 0.1,  0 beyond 1.5
    o = 1 + (1 - cos(pi/2 progress)) (o_end - 1)

Source: Wu et al., "Estimator Meets Equilibrium Perspective: A Rectified Straight Through Estimator for Binary Neural
    Networks Training", 2023: its release (DravenALG/ReSTE). Confidence: high.
Exact: value and gradient of weights and activations, the schedule of o and its end, the bounds 1.5 and 0.1.
Differs: nothing in the layer. Its published runs take 1000 epochs of SGD, which is up to the recipe.
Packs: yes, as one scale per layer.
"""

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed


class ReSTE(Binarizer):
    o_end: Annotated[float, Range(1)] = 3.0
    """o at the end of training; 1 keeps the clipped identity, higher comes nearer to sign and makes gradients differ
    more."""
    bound: Annotated[float, Range(1e-6)] = 1.5
    """Beyond this |x| there is no gradient."""
    core: Annotated[float, Range(1e-6)] = 0.1
    """Up to this |x| the gradient stays the same, instead of going to infinity at 0."""

    def setup(self, layer: BinaryLayer) -> None:
        self.o = nn.Buffer(torch.ones(()), persistent=False)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_power(w, self.o, self.bound, self.core) * w.abs().mean()

    def input(self, x: Tensor) -> Tensor:
        return ops.sign_power(x, self.o, self.bound, self.core)

    def set_progress(self, progress: float) -> None:
        self.o.fill_(1 + (1 - math.cos(math.pi / 2 * progress)) * (self.o_end - 1))

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), w.abs().mean().expand(len(w)), torch.zeros(1))
