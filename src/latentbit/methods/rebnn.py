"""ReBNN: a learned scale per filter, and a pull of W towards its binary filter, stronger where signs flip often.

    B = s q sign(W),  s = |learned| per filter, q = 0.02;  g = dL/dB
    dL/dW = s g + gamma (W - B),  dL/ds = sum(g W) - gamma sum((W - B) q sign(W)) over the filter
    gamma = share of the filter's signs that flipped in the last step times max|g|, limited to [gamma_min, gamma_max]
    activations: a learned shift and ApproxSign, as ReActNet

Source: Xu et al., "Resilient Binary Neural Network", 2023: its release (SteveTsui/ReBNN). Confidence: high on the
    layer, medium on gamma.
Exact: value, both gradients, q and the two limits. The learned scale starts standard normal, as there.
Differs: gamma. The release limits it the wrong way round, min(., 1e-5) and then max(., 2e-4), which is 2e-4 always:
    gamma_min = gamma_max = 2e-4 is what it computes. It also takes W minus its last gradient for the W of the step
    before; ours remembers the signs. Published as the second of two stages of ReActNet.
Packs: yes, with a threshold per input channel.
"""

from typing import Annotated, Any

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, per_input, per_output


class _Resilient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, w: Tensor, s: Tensor, b: Tensor, share: Tensor, least: float, most: float
    ) -> Tensor:
        """`b` is q sign(W), `share` the part of each filter's signs that flipped."""
        ctx.save_for_backward(w, s, b, share)
        ctx.limits = least, most
        return s * b

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        (g,), (w, s, b, share) = grads, ctx.saved_tensors
        gamma = (share * g.flatten(1).abs().amax(1)).clamp(*ctx.limits)
        off, gamma = w - s * b, per_output(gamma, w)
        of_scale = (g * w - gamma * off * b).flatten(1).sum(1)
        return s * g + gamma * off, per_output(of_scale, w), None, None, None, None


class ReBNN(Binarizer):
    gamma_min: Annotated[float, Range(0)] = 1e-5
    """Least pull of W towards its binary filter."""
    gamma_max: Annotated[float, Range(0)] = 2e-4
    """Greatest pull, for filters whose signs flip often under large gradients."""
    quantum: Annotated[float, Range(1e-6)] = 0.02
    """q: size of a binary weight where the learned scale is 1."""

    def setup(self, layer: BinaryLayer) -> None:
        self.scale = nn.Parameter(torch.randn(len(layer.weight)))
        self.shift = nn.Parameter(per_input(layer, 0.0))
        self.flipped = nn.Buffer(torch.zeros(len(layer.weight)))
        self.negative = nn.Buffer(layer.weight.detach() < 0)

    def weight(self, w: Tensor) -> Tensor:
        b = self.quantum * ops.sign(w.detach())
        s = per_output(self.scale.abs(), w)
        return _Resilient.apply(w, s, b, self.flipped, self.gamma_min, self.gamma_max)

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(x + self.shift)

    def latent_input(self, x: Tensor) -> Tensor:
        return ops.hard_tanh(x + self.shift)

    def after_step(self, w: Tensor, lr: float) -> None:
        negative = w < 0
        self.flipped.copy_((negative != self.negative).flatten(1).to(w.dtype).mean(1))
        self.negative.copy_(negative)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), self.quantum * self.scale.abs(), -self.shift.flatten())
