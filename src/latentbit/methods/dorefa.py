"""DoReFa-Net with 1-bit weights and activations: bits 0 and 1 at the threshold 1/2, one scale for the whole layer.

    B = mean|W| sign(W) with dL/dW = dL/dB,   a = round(clip(x, 0, 1)) with da/dx = 1[0 <= x <= 1]

Source: Zhou et al., "DoReFa-Net", 2016, and two released ports. Confidence: high on activations, medium on the rule
    for 1-bit weights, which is from memory.
Exact: activations and weights of one bit, their gradients.
Differs: x = 1/2 gives 1; gradients are not quantized.
Packs: yes.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, Deployed, deploy_zero_one


class DoReFa(Binarizer):
    def weight(self, w: Tensor) -> Tensor:
        return ops.straight_through(ops.sign(w.detach()) * w.detach().abs().mean(), w)

    def input(self, x: Tensor) -> Tensor:
        return ops.straight_through(ops.step(x.detach() - 0.5), x.clamp(0, 1))

    def latent_input(self, x: Tensor) -> Tensor:
        return x.clamp(0, 1)

    def deploy(self, w: Tensor) -> Deployed:
        return deploy_zero_one(ops.sign(w), w.abs().mean().expand(len(w)), torch.full((1,), 0.5))
