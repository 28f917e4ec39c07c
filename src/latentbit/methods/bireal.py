"""Bi-Real Net: ApproxSign for activations; alpha * sign(W) whose gradient reaches W clipped but not scaled.

    dL/dx = g max(0, 2 - 2|x|),   dL/dW = dL/d(alpha B) 1[|W| <= 1],   alpha = mean |W| without gradient

Source: Liu et al., "Bi-Real Net", 2018, and its release. Confidence: high.
Exact: ApproxSign, the scale without gradient, the clipped gradient that is not scaled.
Differs: its skip around every convolution belongs to the network (latentbit.models have it), the real network that
    its paper starts from to the recipe.
Packs: yes.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, Deployed, mean_abs, per_output


class BiReal(Binarizer):
    def weight(self, w: Tensor) -> Tensor:
        hard = ops.sign(w.detach()) * per_output(mean_abs(w.detach()), w)
        return ops.straight_through(hard, w.clamp(-1, 1))

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(x)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), mean_abs(w), torch.zeros(1))
