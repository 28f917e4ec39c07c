"""Si-BNN: activations 0 and 1 with a learned threshold and window per channel; alpha * sign(W), gradient through alpha.

    u = s (x - theta),  a = 1[u >= 0],  da/du = 1[-0.3 < u < 1];  W <- clamp(W, -1, 1) after every step
    dL/dW = g 1[|W| <= 1] (1 - 1/n) + sign(W) mean(g sign(W)),  g = dL/d(alpha B)

Source: Wang et al., "Sparsity-Inducing Binarized Neural Networks", 2020 and TNNLS 2022, and the release of 2022.
    Confidence: high for that release.
Exact: threshold, window and their learning, the gradient of W, the clipping.
Differs: its second BatchNorm, in front of the threshold, belongs to the network (norm="both").
Packs: yes; where a slope has turned negative, the bits of that channel turn round.
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
    deploy_zero_one,
    mean_abs,
    per_input,
    per_output,
)


class SiBNN(Binarizer):
    window_low: Annotated[float, Range(high=0)] = -0.3
    """Below this u the activation has no gradient."""
    window_high: Annotated[float, Range(1e-6)] = 1.0
    """Above this u the activation has no gradient."""

    decays = False

    def setup(self, layer: BinaryLayer) -> None:
        self.threshold = nn.Parameter(per_input(layer, 0.0))
        self.slope = nn.Parameter(per_input(layer, 1.0))

    def weight(self, w: Tensor) -> Tensor:
        b = ops.sign(w.detach())
        alpha = per_output(mean_abs(w), w)
        soft = w.clamp(-1, 1) * (1 - 1 / w[0].numel()) + alpha * b
        return ops.straight_through(alpha.detach() * b, soft)

    def input(self, x: Tensor) -> Tensor:
        u = self.slope * (x - self.threshold)
        return ops.straight_through(ops.step(u.detach()), u.clamp(self.window_low, self.window_high))

    def latent_input(self, x: Tensor) -> Tensor:
        return (self.slope * (x - self.threshold)).clamp(self.window_low, self.window_high)

    def after_step(self, w: Tensor, lr: float) -> None:
        w.clamp_(-1, 1)

    def deploy(self, w: Tensor) -> Deployed:
        theta, slope = self.threshold.detach().float().flatten(), self.slope.detach().flatten()
        # A falling slope switches the bit on where x <= theta: it is off from the next number on, and turned round.
        # Without a slope u = 0 and the bit is always on: no number is below the least.
        threshold = torch.where(slope < 0, theta.nextafter(theta.new_tensor(torch.inf)), theta)
        threshold = torch.where(slope == 0, torch.finfo(theta.dtype).min, threshold)
        return deploy_zero_one(ops.sign(w), mean_abs(w), threshold, flip=slope < 0)
