"""SA-BNN, our reading: weights that are +1 and weights that are -1 get gradient coefficients of their own.

    dL/dW = tau+ g 1[|W| <= 1] where W >= 0,  tau- g 1[|W| <= 1] where W < 0;  all else as Bi-Real Net

Source: Liu et al., "SA-BNN: State-Aware Binary Neural Network", 2021: abstract and introduction. Confidence: low,
    only the idea is known, no formula and no code.
Exact: that weights of the two states have gradient coefficients of their own.
Differs: that tau+ and tau- are constants, and their values, are ours. No claim to be the published method.
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.bireal import BiReal
from latentbit.methods.parts.binarizer import mean_abs, per_output


class SABNN(BiReal):
    tau_plus: Annotated[float, Range(0)] = 1.0
    """Factor of the gradient of weights that are +1."""
    tau_minus: Annotated[float, Range(0)] = 0.8
    """Factor of the gradient of weights that are -1."""

    def weight(self, w: Tensor) -> Tensor:
        b = ops.sign(w.detach())
        tau = torch.where(b > 0, self.tau_plus, self.tau_minus).to(w.dtype)
        return ops.straight_through(b * per_output(mean_abs(w.detach()), w), tau * w.clamp(-1, 1))
