"""The paper's base: alpha * sign(W) and sign(x), straight-through by hard tanh, alpha without gradient.

    B = sign(W),  alpha = mean |W| per output channel,  dL/dW = alpha * dL/d(alpha B) * 1[|W| <= 1]

Source: Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", Eqs. 1 and 2.
    Confidence: high.
Exact: sign, scale and estimators.
Differs: that alpha has no gradient is our choice, the paper is silent.
Packs: yes.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, Deployed, mean_abs, per_output


class Sign(Binarizer):
    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_clip(w) * per_output(mean_abs(w.detach()), w)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), mean_abs(w), torch.zeros(1))
