"""BONN: sign(k) over the mean of a learned vector v, and a prior that draws every filter to two modes +-mu.

    B = sign(k) / mean(v);   dL/dk = dL/d sign(k) 1[|v k| <= 1] v + the gradient of the penalty
    penalty = lambda/2 sum_filters { |sign(k) - v k|^2 + nu sum (|k| - mu)^2 / s^2 + nu n log s^2 },  mu, s learned

Source: Gu et al., "Bayesian Optimized 1-Bit CNNs", 2019, as the book of its authors prints it. Confidence: high on
    the losses, medium on the rest.
Exact: the kernel loss and the gradient of k.
Differs: the book prints both mean(v) and 1/mean(v), ours suits the loss. Ours too: nu, one v per tap that starts with
    v k near +-1, as the loss wants it, log s^2 as parameter. Its feature loss is a key of the recipe
    (center_variance).
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, mean_abs


class BONN(Binarizer):
    penalty_weight: Annotated[float, Range(0)] = 1e-4
    """lambda, of the whole penalty."""
    prior_weight: Annotated[float, Range(0)] = 1e-2
    """nu, of the two modes inside the penalty."""

    def setup(self, layer: BinaryLayer) -> None:
        k = layer.weight.detach()
        mu = mean_abs(k)
        spread = (k.abs().flatten(1) - mu[:, None]).square().mean(1)
        self.v = nn.Parameter((1 / k.abs().mean().clamp(min=1e-12)).repeat(*k[0].shape))
        self.mu = nn.Parameter(mu)
        self.log_variance = nn.Parameter(spread.clamp(min=1e-12).log())

    def weight(self, w: Tensor) -> Tensor:
        b = ops.straight_through(ops.sign(w.detach()), (self.v * w).clamp(-1, 1))
        return b / self.v.mean()

    def penalty(self, w: Tensor) -> Tensor:
        error = (ops.sign(w.detach()) - self.v * w).square().sum()
        off_mode = (w.abs().flatten(1) - self.mu[:, None]).square().sum(1)
        n = w[0].numel()
        prior = (off_mode * torch.exp(-self.log_variance) + n * self.log_variance).sum()
        return self.penalty_weight / 2 * (error + self.prior_weight * prior)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), (1 / self.v.mean()).expand(len(w)), torch.zeros(1))
