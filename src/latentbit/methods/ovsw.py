"""OvSW: gradients that never get too small for their filter, and a pull to zero for weights that never change sign.

    B = s sign(W), s = mean |standardized W| per filter without gradient, dL/dW = dL/dB s =: g
    per filter: if |g| / |W| < delta (L2 norms), g becomes g delta |W| / |g|               adaptive gradient scaling
    t <- 0.999 t + 0.001 [sign changed in the last step];  where t < threshold, g + decay W   silence awareness decaying
    activations: ApproxSign of x / std per sample (std without gradient), which is skipped at inference

Source: Xiang et al., "OvSW: Overcoming Silent Weights for Accurate Binary Neural Networks", 2024: its release
    (JingyangXiang/OvSW), layer, trainer and configurations. Confidence: high.
Exact: weights, activations, both changes of the gradient and their order, t from 0. The options are those of its
    ImageNet runs; CIFAR-10 with ResNet-20 has delta 0.04 and decay 9e-4.
Differs: nothing in the layer. Loops without a torch optimizer do not get the two changes of the gradient, and are
    told so.
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
    mean_abs,
    need_spread,
    per_output,
)


class OvSW(Binarizer):
    delta: Annotated[float, Range(0)] = 0.01
    """Least norm of a filter's gradient, as a share of the norm of the filter; 0 changes no gradient."""
    decay: Annotated[float, Range(0)] = 2e-5
    """Weight decay of weights that do not change sign, beside that of the optimizer."""
    momentum: Annotated[float, Range(0, 1)] = 0.999
    """Of t, which follows how often a weight changes sign."""
    threshold: Annotated[float, Range(0, 1)] = 1e-4
    """Below this t a weight counts as silent."""

    def setup(self, layer: BinaryLayer) -> None:
        need_spread(self, layer)
        self.changes = nn.Buffer(torch.zeros_like(layer.weight))
        self.negative = nn.Buffer(layer.weight.detach() < 0)

    def scales(self, w: Tensor) -> Tensor:
        var, mean = torch.var_mean(w.detach().flatten(1), dim=1)
        return mean_abs(w.detach() - per_output(mean, w)) / (var + 1e-5).sqrt()

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(w) * per_output(self.scales(w), w)

    def input(self, x: Tensor) -> Tensor:
        if self.training:
            rows = x.detach().flatten(1)
            x = x / per_output((rows.var(1, correction=min(1, rows.shape[1] - 1)) + 1e-5).sqrt(), x)
        return ops.approx_sign(x)

    def before_step(self, w: Tensor) -> None:
        if w.grad is None:
            return
        size = per_output(w.flatten(1).norm(dim=1).clamp(min=1e-3), w)
        steepness = per_output(w.grad.flatten(1).norm(dim=1).clamp(min=1e-6), w)
        w.grad.mul_((self.delta * size / steepness).clamp(min=1))
        w.grad.add_(w * (self.changes < self.threshold), alpha=self.decay)

    def after_step(self, w: Tensor, lr: float) -> None:
        negative = w < 0
        changed = (negative != self.negative).to(w.dtype)
        self.changes.mul_(self.momentum).add_(changed, alpha=1 - self.momentum)
        self.negative.copy_(negative)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), self.scales(w), torch.zeros(1))
