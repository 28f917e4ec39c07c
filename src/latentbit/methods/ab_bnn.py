"""A&B BNN, its layer: standardized filters scaled for networks without BatchNorm, and a learned gain per output.

    v = (W - mean) / (std + 1e-5) / sqrt(n),  n weights in a filter, std of the population
    B = gain mean|v| sign(v),  dB/dv = gain 1[|v| <= 1], nothing flows through the mean;  gain starts at 1
    activations: d sign/dx = 2 k s (1 - s),  s = sigmoid(k x),  k = 3

Source: Ma et al., "A&B BNN: Add&Bit-Operation-Only Hardware-Friendly Binary Neural Network", 2024: its release
    (Ruichen0424/AB-BNN), layers and networks. Confidence: high.
Exact: value and gradient of weights and activations.
Differs: the network is not part of a method. Its blocks have no BatchNorm but fixed factors around each layer (0.25 on
    the branch, 1 / expected deviation before the sign) and PReLUs whose slopes are powers of two; with the BatchNorm of
    other networks the layer works, and multiplications remain. New weights start as the network draws them, not uniform
    in [0, 0.001].
Packs: yes. The gain is a scale per output channel.
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


class ABBNN(Binarizer):
    sharpness: Annotated[float, Range(1e-6)] = 3.0
    """k: the higher, the narrower the gradient of activations, and the steeper at 0."""

    def setup(self, layer: BinaryLayer) -> None:
        need_spread(self, layer)
        self.gain = nn.Parameter(torch.ones(len(layer.weight)))

    def standardized(self, w: Tensor) -> Tensor:
        std, mean = torch.std_mean(w.flatten(1), dim=1, correction=0)
        return (w - per_output(mean, w)) / per_output(std + 1e-5, w) / w[0].numel() ** 0.5

    def latent_weight(self, w: Tensor) -> Tensor:
        return self.standardized(w) * per_output(self.gain, w)

    def weight(self, w: Tensor) -> Tensor:
        v = self.standardized(w)
        b = ops.sign(v.detach()) * per_output(mean_abs(v.detach()), w)
        return ops.straight_through(b, v.clamp(-1, 1)) * per_output(self.gain, w)

    def input(self, x: Tensor) -> Tensor:
        return ops.sign_sigmoid(x, self.sharpness)

    def deploy(self, w: Tensor) -> Deployed:
        v = self.standardized(w)
        return Deployed(ops.sign(v), self.gain * mean_abs(v), torch.zeros(1))
