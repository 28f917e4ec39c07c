"""BNN: sign(W) and sign(x) without a scale; the weight's gradient passes unchanged and W is clipped to [-1, 1].

    dL/dW = dL/dB,   W <- clamp(W, -1, 1) after every step,   dL/dx = dL/d sign(x) * 1[|x| <= 1]

Source: Hubara, Courbariaux et al., "Binarized Neural Networks", 2016, and its release. Confidence: high.
Exact: both signs, both estimators, the clipping.
Differs: no shift-based BatchNorm or AdaMax. The published network also binarizes its first and last layers:
    binarize_(model, "bnn", keep=[]).
Packs: yes.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, Deployed


class BNN(Binarizer):
    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(w)

    def after_step(self, w: Tensor, lr: float) -> None:
        w.clamp_(-1, 1)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), torch.ones(len(w)), torch.zeros(1))
