"""Bop: no latent weights. The layer holds B itself, and an optimizer of its own flips it (training.optimizers.Bop).

    y = sign(x) conv B,  dL/dB goes to the optimizer,  dL/dx = g 1[|x| <= 1]

Paper: Helwegen et al., "Latent Weights Do Not Exist", 2019. Confidence: high (released code). There being no W, the
latent view differs from the binary one by its activations only.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed
from latentbit.training import optimizers


class Bop(Binarizer):
    optimizer = optimizers.Bop

    def __init__(self, layer: BinaryLayer) -> None:
        super().__init__(layer)
        with torch.no_grad():
            layer.weight.copy_(ops.sign(layer.weight))

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(w)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), torch.ones(len(w)), torch.zeros(1))
