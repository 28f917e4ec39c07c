"""SA-BNN, our reading: weights that are +1 and weights that are -1 get gradient coefficients of their own.

    dL/dW = tau+ g 1[|W| <= 1] where W >= 0,  tau- g 1[|W| <= 1] where W < 0;  all else as Bi-Real Net

Paper: Liu et al., "SA-BNN: State-Aware Binary Neural Network", 2021. Confidence: low. Only the idea is known, no
formula and no code: that tau+ and tau- are constants, and their values, are ours. No claim to be the published method.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.bireal import BiReal
from latentbit.methods.parts.binarizer import mean_abs, per_output

TAU_PLUS, TAU_MINUS = 1.0, 0.8


class SABNN(BiReal):
    def weight(self, w: Tensor) -> Tensor:
        b = ops.sign(w.detach())
        tau = torch.where(b > 0, TAU_PLUS, TAU_MINUS).to(w.dtype)
        return ops.straight_through(b * per_output(mean_abs(w.detach()), w), tau * w.clamp(-1, 1))
