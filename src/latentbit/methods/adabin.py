"""AdaBin: two values that suit each filter instead of +-alpha, and two learned ones for the activations of a layer.

    W_b = s sign((W - m) / s) + m,  m and s mean and population deviation of the filter (gradient flows), EDE backward
    u = (x - beta) / alpha,  a = alpha (sign(u) + beta), ApproxSign backward;  alpha starts at 1, beta at 0

Source: Tu et al., "AdaBin: Improving Binary Neural Networks with Adaptive Binary Sets", 2022, and its release.
    Confidence: high.
Exact: both sets of two values, their gradients, the schedule of t.
Differs: as its release, not as its paper, which prints a = alpha sign(u) + beta (the same only at the start). Its
    Maxout belongs to the network: activation="maxout".
Packs: yes, unless it learned alpha = 0.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, NotDeployable, per_output
from latentbit.methods.parts.temperature import Temperature


class AdaBin(Binarizer):
    t_min: Annotated[float, Range(1e-6)] = 1e-3
    """Temperature t at the start of training; the estimator is nearly the identity there."""
    t_max: Annotated[float, Range(1e-6)] = 10.0
    """Temperature t at the end of training; the higher, the narrower the estimator."""

    def setup(self, layer: BinaryLayer) -> None:
        self.alpha = nn.Parameter(torch.ones(()))
        self.beta = nn.Parameter(torch.zeros(()))
        self.temperature = Temperature(self.t_min, self.t_max)

    def weight(self, w: Tensor) -> Tensor:
        std, mean = torch.std_mean(w.flatten(1), dim=1, correction=0)
        s, m = per_output(std.clamp(min=1e-12), w), per_output(mean, w)
        return s * ops.sign_tanh((w - m) / s, self.temperature.t, self.temperature.k) + m

    def input(self, x: Tensor) -> Tensor:
        return self.alpha * (ops.approx_sign((x - self.beta) / self.alpha) + self.beta)

    def latent_input(self, x: Tensor) -> Tensor:
        return self.alpha * (ops.hard_tanh((x - self.beta) / self.alpha) + self.beta)

    def set_progress(self, progress: float) -> None:
        self.temperature.set(progress)

    def deploy(self, w: Tensor) -> Deployed:
        alpha, beta = self.alpha.detach(), self.beta.detach()
        if not alpha.is_meta and alpha == 0:
            raise NotDeployable(
                "method adabin has learned alpha = 0: there is nothing left to take the sign of"
            )
        std, mean = torch.std_mean(w.flatten(1), dim=1, correction=0)
        std = std.clamp(min=1e-12)
        signs = ops.sign((w - per_output(mean, w)) / per_output(std, w))
        # sign(u) = +1 where x >= beta; with a negative alpha -1 where x > beta, and all signs turn round.
        above = torch.nextafter(beta, torch.full_like(beta, torch.inf))
        threshold = torch.where(alpha > 0, beta, above).reshape(1)
        size = alpha.abs()
        return Deployed(
            signs, size * std, threshold, mean=size * mean, lift=torch.where(alpha > 0, beta, -beta)
        )
