"""ReCU: standardized filters whose tails are clamped, so that weights far out come back to where they can change sign.

    v = 2 sqrt(2) (W - mean) / std,  Q = -mean|v| ln(2 - 2 tau) over the layer,  u = clamp(v, -Q, Q),  B = alpha sign(u)
    dB/du = alpha;  tau = A e^progress + 0.85 - A rises to 0.99;  activations: ApproxSign of x / std per sample

Paper: Xu et al., "ReCU: Reviving the Dead Weights", 2021. Confidence: high (released code). alpha is learned and
starts uniform in [0, 1]. The division by std shapes the gradient only and is skipped at inference.
"""

import math

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, LearnedScale, per_output

TAU = (0.85, 0.99)


class ReCU(Binarizer):
    tau: Tensor

    def __init__(self, layer: BinaryLayer) -> None:
        super().__init__(layer)
        self.alpha = LearnedScale(torch.rand(len(layer.weight)))
        self.register_buffer("tau", torch.tensor(TAU[0]), persistent=False)

    def latent_weight(self, w: Tensor) -> Tensor:
        v = 2 * 2**0.5 * ops.standardize(w)
        q = -v.detach().abs().mean() * torch.log(2 - 2 * self.tau)
        return v.clamp(-q, q)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(self.latent_weight(w)) * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        if self.training:
            std = x.flatten(1).std(1).clamp(min=1e-12)
            x = x / per_output(std, x)
        return ops.approx_sign(x)

    def set_progress(self, progress: float) -> None:
        first, last = TAU
        a = (last - first) / (math.e - 1)
        self.tau.fill_(a * math.exp(progress) + first - a)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(ops.standardize(w)), self.alpha(), torch.zeros(1))
