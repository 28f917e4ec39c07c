"""XNOR-Net++, case 1: one learned scale per output channel in place of the analytic alpha and K.

    y = gamma * (sign(x) conv sign(W)),  gamma starts at 1 and learns by plain back-propagation

Source: Bulat and Tzimiropoulos, "XNOR-Net++", 2019. Confidence: high on the formula.
Exact: case 1, one scale per output channel.
Differs: cases 2 to 4 scale every pixel, which ties the network to one resolution, and are left out.
Packs: yes.
"""

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, per_output


class XNORPlusPlus(Binarizer):
    def setup(self, layer: BinaryLayer) -> None:
        self.gamma = nn.Parameter(torch.ones(len(layer.weight)))

    def weight(self, w: Tensor) -> Tensor:
        # Scaling the filters is scaling their outputs, and leaves the bias of the layer alone.
        return ops.sign_clip(w) * per_output(self.gamma, w)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), self.gamma, torch.zeros(1))
