"""RBNN: standardized filters turned towards their signs by two rotations per layer, refreshed every epoch.

    v = standardized W as a matrix X (a x b),  u = v + |sin beta| (R1' X R2 - v), rotated part without gradient
    B = alpha sign(u), alpha learned;  x loses its mean and scale per sample;  d sign/du = k max(0, sqrt(2) t - t^2 |u|)

Source: Lin et al., "Rotated Binary Neural Network", 2020, and its release. Confidence: high.
Exact: rotations and their refreshing, both estimators, the normalised input. As there, beta starts at pi/2, where W
    has no gradient: Adam with weight decay would shrink W to nothing, use SGD or no decay.
Differs: the rotations are refreshed after the first step of an epoch, not before it.
Packs: yes, with the mean of every sample computed when it runs. A value that is the mean up to rounding may fall on
    either side.
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
    mean_abs,
    need_spread,
    per_output,
)
from latentbit.methods.parts.temperature import Temperature


def nearly_square(n: int) -> tuple[int, int]:
    """a * b = n with a the largest divisor not above sqrt(n)."""
    a = next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)
    return a, n // a


class RBNN(Binarizer):
    t_min: Annotated[float, Range(1e-6)] = 1e-2
    """Temperature t at the start of training; the estimator is nearly the identity there."""
    t_max: Annotated[float, Range(1e-6)] = 10.0
    """Temperature t at the end of training; the higher, the narrower the estimator."""
    rounds: Annotated[int, Range(1)] = 3
    """How often each of the two rotations is made the best for the other, once per epoch."""

    def setup(self, layer: BinaryLayer) -> None:
        need_spread(self, layer)
        w = layer.weight.detach()
        a, b = nearly_square(w[0].numel())
        self.left = nn.Buffer(nn.init.orthogonal_(torch.empty(a, a)))
        self.right = nn.Buffer(nn.init.orthogonal_(torch.empty(b, b)))
        self.alpha = LearnedScale(mean_abs(w))
        self.beta = nn.Parameter(torch.full((len(w),), math.pi / 2))
        self.temperature = Temperature(self.t_min, self.t_max)
        self.refreshed_at = nn.Buffer(torch.tensor(-1.0))
        self.progress = 0.0
        self.due = True

    def latent_weight(self, w: Tensor) -> Tensor:
        v = ops.standardize(w)
        matrices = v.detach().view(len(w), len(self.left), len(self.right))
        rotated = (self.left.T @ matrices @ self.right).view_as(v)
        return v + per_output(self.beta.sin().abs(), w) * (rotated - v)

    def weight(self, w: Tensor) -> Tensor:
        u = self.latent_weight(w)
        return ops.sign_quadratic(u, self.temperature.t, self.temperature.k) * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        t = self.temperature.t.clamp(min=1)
        return ops.sign_quadratic(ops.standardize(x), t, torch.ones_like(t))

    def latent_input(self, x: Tensor) -> Tensor:
        return ops.hard_tanh(ops.standardize(x))

    def set_progress(self, progress: float) -> None:
        self.temperature.set(progress)
        self.progress = progress
        # A run resumed within an epoch has its refresh behind it.
        self.due = bool(self.refreshed_at != torch.tensor(progress).to(self.refreshed_at))

    def after_step(self, w: Tensor, lr: float) -> None:
        if self.due:
            self.refresh(w)
            self.refreshed_at.fill_(self.progress)
            self.due = False

    def refresh(self, w: Tensor) -> None:
        """Turn the rotations, each in turn the best for the other, so that R1' X R2 comes near its signs."""
        x = ops.standardize(w).view(len(w), len(self.left), len(self.right))
        for _ in range(self.rounds):
            b = ops.sign(self.left.T @ x @ self.right)
            u, _, vh = torch.linalg.svd((b @ self.right.T @ x.mT).sum(0))
            self.left.copy_(vh.T @ u.T)
            u, _, vh = torch.linalg.svd((x.mT @ self.left @ b).sum(0))
            self.right.copy_(u @ vh)

    def deploy(self, w: Tensor) -> Deployed:
        # Dividing by the deviation changes no sign.
        return Deployed(ops.sign(self.latent_weight(w)), self.alpha(), torch.zeros(1), centred=True)
