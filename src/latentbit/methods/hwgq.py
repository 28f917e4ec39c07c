"""HWGQ-Net: activations of a few evenly spaced levels, as suits the positive half of a normal distribution.

    a = step * (1[x > 0] + 1[x > 1.5 step] + 1[x > 2.5 step]),  step = 0.538, so 2 bits: 0, 0.538, 1.076, 1.614
    da/dx = 1[0 < x <= 1.614], a clipped ReLU;   B = mean|W| sign(W) per filter, dL/dW = dL/dB

Source: Cai et al., "Deep Learning with Low Precision by Half-wave Gaussian Quantization", 2017: its release
    (zhaoweicai/hwgq), quantizer, binary convolution and networks. Confidence: high.
Exact: levels, thresholds between them, both gradients.
Differs: nothing in the layer. Its networks put a BatchNorm, and no ReLU, in front of it: a ReLU would do no harm.
Packs: yes, as one binary layer per level above 0, whose results are added; every one stores its bits.
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
    deploy_sum,
    deploy_zero_one,
    mean_abs,
    per_output,
)


class HWGQ(Binarizer):
    levels: Annotated[int, Range(1, 15)] = 3
    """Levels above 0: 3 are 2 bits, 7 are 3 bits."""
    step: Annotated[float, Range(1e-6)] = 0.538
    """From one level to the next; best for 3 levels of inputs with variance 1."""

    def setup(self, layer: BinaryLayer) -> None:
        between = [0.0, *((level + 0.5) * self.step for level in range(1, self.levels))]
        self.thresholds = nn.Buffer(torch.tensor(between), persistent=False)

    def weight(self, w: Tensor) -> Tensor:
        return ops.straight_through(ops.sign(w.detach()) * per_output(mean_abs(w.detach()), w), w)

    def input(self, x: Tensor) -> Tensor:
        level = (x.detach().unsqueeze(-1) > self.thresholds).sum(-1)
        inside = (x > 0) & (x <= self.levels * self.step)
        return ops.straight_through(self.step * level.to(x.dtype), x * inside)

    def latent_input(self, x: Tensor) -> Tensor:
        return x.clamp(0, self.levels * self.step)

    def deploy(self, w: Tensor) -> Deployed:
        # A bit is on from the first number above its threshold.
        above = self.thresholds.nextafter(self.thresholds.new_tensor(torch.inf))
        scale = self.step * mean_abs(w)
        return deploy_sum([deploy_zero_one(ops.sign(w), scale, threshold.reshape(1)) for threshold in above])
