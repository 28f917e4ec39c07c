"""BNN+: the sign-swish estimator for activations, a learned scale, and a penalty that draws |W| to that scale.

    d sign(x)/dx = beta (2 - beta x tanh(beta x / 2)) / (1 + cosh(beta x)),  beta = 5
    B = alpha sign(W), alpha learned per output channel;  penalty = lambda mean | alpha - |W| |

Paper: Darabi et al., "BNN+: Improved Binary Network Training", 2018. Confidence: high on the estimator, medium on the
penalty: lambda grows from 1e-6 to 1e-5 (from memory), linearly (ours). alpha starts at mean |W| (ours).
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import (
    Binarizer,
    BinaryLayer,
    Deployed,
    LearnedScale,
    mean_abs,
    per_output,
)

BETA = 5.0
LAMBDA = (1e-6, 1e-5)


class BNNPlus(Binarizer):
    strength: Tensor

    def __init__(self, layer: BinaryLayer) -> None:
        super().__init__(layer)
        self.alpha = LearnedScale(mean_abs(layer.weight.detach()))
        self.register_buffer("strength", torch.tensor(LAMBDA[0]), persistent=False)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_clip(w) * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        return ops.sign_swish(x, BETA)

    def penalty(self, w: Tensor) -> Tensor:
        return self.strength * (per_output(self.alpha(), w) - w.abs()).abs().mean()

    def set_progress(self, progress: float) -> None:
        first, last = LAMBDA
        self.strength.fill_(first + (last - first) * progress)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), self.alpha(), torch.zeros(1))
