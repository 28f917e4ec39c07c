"""ReCU: standardized filters whose tails are clamped, so that weights far out come back to where they can change sign.

    v = 2 sqrt(2) (W - mean) / sqrt(var + 1e-5),  Q = -mean|v| ln(2 - 2 tau) over the layer,  u = clamp(v, -Q, Q)
    B = alpha sign(u)
    dB/du = alpha;  tau = A e^progress + 0.85 - A rises to 0.99;  activations: ApproxSign of x / std per sample

Source: Xu et al., "ReCU: Reviving the Dead Weights", 2021, and its release. Confidence: high.
Exact: the clamp and its schedule, both estimators, 1e-5 under the roots; alpha is learned and starts uniform in [0, 1].
Differs: nothing. As there, the division of x by its std is skipped at inference, where it changes no sign.
Packs: yes.
"""

import math
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
    need_spread,
    per_output,
)

EPS = 1e-5
"""Under the roots, as in the release: it damps filters that weight decay has made small."""


class ReCU(Binarizer):
    tau_min: Annotated[float, Range(0.51, 0.9999)] = 0.85
    """tau at the start of training; the lower, the nearer the tails are clamped."""
    tau_max: Annotated[float, Range(0.51, 0.9999)] = 0.99
    """tau at the end of training."""

    def setup(self, layer: BinaryLayer) -> None:
        need_spread(self, layer)
        self.alpha = LearnedScale(torch.rand(len(layer.weight)))
        self.tau = nn.Buffer(torch.tensor(self.tau_min), persistent=False)

    def latent_weight(self, w: Tensor) -> Tensor:
        rows = w.flatten(1)
        variance, mean = torch.var_mean(rows, dim=1, keepdim=True)
        v = 2 * 2**0.5 * ((rows - mean) / (variance + EPS).sqrt()).view_as(w)
        q = -v.detach().abs().mean() * torch.log(2 - 2 * self.tau)
        return v.clamp(-q, q)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(self.latent_weight(w)) * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        if self.training:
            x = x / per_output((x.flatten(1).var(1) + EPS).sqrt(), x)
        return ops.approx_sign(x)

    def set_progress(self, progress: float) -> None:
        first, last = self.tau_min, self.tau_max
        a = (last - first) / (math.e - 1)
        self.tau.fill_(a * math.exp(progress) + first - a)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(ops.standardize(w)), self.alpha(), torch.zeros(1))
