"""BiPer: the sign of a sine of W, so that every weight has a change of sign nearby; at first the sine itself.

    w = sin(f W);  B = alpha w until `binary_from` of training, alpha sign(w) after that with dB/dw = alpha
    loss + tau mean(sin^2(f W));  activations: ApproxSign of x / std per sample, which is skipped at inference

Source: Vargas et al., "BiPer: Binary Neural Networks using a Periodic Function", 2024: its release (edmav4/BiPer),
    layer, both training loops and their scripts for CIFAR-10. Confidence: high.
Exact: both stages, the frequency 20, tau 0.037 and 0.0468, alpha learned from uniform in [0, 1], the division by std.
Differs: the two stages are one training here, split where the scripts split (600 of 900 epochs); the released second
    stage starts from the best epoch of the first with a learning rate and decay of its own. Evaluated with sign at any
    time.
Packs: yes, as signs of the sine.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, LearnedScale, per_output


class BiPer(Binarizer):
    frequency: Annotated[float, Range(1e-6)] = 20.0
    """f: signs of neighbouring weights differ more often the higher it is."""
    tau: Annotated[float, Range(0)] = 0.037
    """Weight of the penalty while weights are real."""
    tau_binary: Annotated[float, Range(0)] = 0.0468
    """Weight of the penalty once they are binary."""
    binary_from: Annotated[float, Range(0, 1)] = 600 / 900
    """Share of training after which the sign is taken."""

    def setup(self, layer: BinaryLayer) -> None:
        self.alpha = LearnedScale(torch.rand(len(layer.weight)))
        self.binary = nn.Buffer(torch.tensor(self.binary_from == 0), persistent=False)

    def latent_weight(self, w: Tensor) -> Tensor:
        return torch.sin(self.frequency * w)

    def weight(self, w: Tensor) -> Tensor:
        sine = self.latent_weight(w)
        b = ops.sign_identity(sine)
        if self.training:
            b = torch.where(self.binary, b, sine)
        return b * per_output(self.alpha(), w)

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(ops.over_deviation(x) if self.training else x)

    def penalty(self, w: Tensor) -> Tensor:
        tau = torch.where(self.binary, self.tau_binary, self.tau)
        return tau * self.latent_weight(w).square().mean()

    def set_progress(self, progress: float) -> None:
        self.binary.fill_(progress >= self.binary_from)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(self.latent_weight(w)), self.alpha(), torch.zeros(1))
