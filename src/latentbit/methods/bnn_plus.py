"""BNN+: the sign-swish estimator for activations, a learned scale, and a penalty that draws |W| to that scale.

    d sign(x)/dx = beta (2 - beta x tanh(beta x / 2)) / (1 + cosh(beta x)),  beta = 5
    B = alpha sign(W), alpha learned per output channel;  penalty = lambda mean | alpha - |W| |

Source: Darabi et al., "BNN+: Improved Binary Network Training", 2018. Confidence: high on the estimator, medium on
    the penalty.
Exact: the sign-swish estimator, the form of the penalty (the paper's R1).
Differs: lambda grows from 1e-6 to 1e-5 (from memory), linearly (ours); alpha starts at mean |W| (ours).
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import (
    Binarizer,
    BinaryLayer,
    Deployed,
    LearnedScale,
    mean_abs,
    per_output,
)


class BNNPlus(Binarizer):
    beta: Annotated[float, Range(1e-3)] = 5.0
    """How narrow the estimator of the activations is; its slope at 0."""
    penalty_weight_start: Annotated[float, Range(0)] = 1e-6
    """lambda at the start of training."""
    penalty_weight_end: Annotated[float, Range(0)] = 1e-5
    """lambda at the end of training."""

    def setup(self, layer: BinaryLayer) -> None:
        self.alpha = LearnedScale(mean_abs(layer.weight.detach()))
        self.strength = nn.Buffer(torch.tensor(self.penalty_weight_start), persistent=False)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_clip(w) * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        return ops.sign_swish(x, self.beta)

    def penalty(self, w: Tensor) -> Tensor:
        return self.strength * (per_output(self.alpha(), w) - w.abs()).abs().mean()

    def set_progress(self, progress: float) -> None:
        first, last = self.penalty_weight_start, self.penalty_weight_end
        self.strength.fill_(first + (last - first) * progress)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), self.alpha(), torch.zeros(1))
