"""PCNN: filters nearest to a learned projection of W, pulled there by a loss on the filters after the next step.

    C^ = a sign(mean(P) C),  a = mean |C| of the layer;  L = L_task + lambda/2 ||C^ - P C'||^2,  C' = C + eta dL/dC^
    dL/dC = dL/dC^ 1[|P C| <= 1] P + lambda (P C' - C^) P,  and for P the same with C, C' as last factors, summed

Source: Gu et al., "Projection CNNs", 2019, as the book of its authors prints it. Confidence: high on the loss, medium
    on the rest.
Exact: the projection loss and both gradients.
Differs: one projection P (J = 1), which starts at 1 (not printed). Left out: the progressive schedule of its
    training.
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, c: Tensor, p: Tensor, rate: Tensor, penalty_weight: float) -> Tensor:
        quantized = c.abs().mean() * ops.sign(c * p.mean())
        ctx.save_for_backward(c, p, rate, quantized)
        ctx.penalty_weight = penalty_weight  # type: ignore[attr-defined]
        return quantized

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        # The loss on the filters needs dL/dC^, which exists only here: it has a gradient but never a value.
        c, p, rate, quantized = ctx.saved_tensors  # type: ignore[attr-defined]
        g = grads[0]
        passed = g * ((p * c).abs() <= 1)
        ahead = c + rate * g
        error = ctx.penalty_weight * (p * ahead - quantized)  # type: ignore[attr-defined]
        return passed * p + error * p, (passed * c + error * ahead).sum((0, 1)), None, None


class PCNN(Binarizer):
    penalty_weight: Annotated[float, Range(0)] = 1e-4
    """lambda, of the loss on the filters."""

    def setup(self, layer: BinaryLayer) -> None:
        self.projection = nn.Parameter(torch.ones(layer.weight.shape[2:]))
        self.rate = nn.Buffer(torch.zeros(()))

    def weight(self, w: Tensor) -> Tensor:
        return _Project.apply(w, self.projection, self.rate, self.penalty_weight)

    def after_step(self, w: Tensor, lr: float) -> None:
        self.rate.fill_(lr)

    def deploy(self, w: Tensor) -> Deployed:
        signs = ops.sign(w * self.projection.mean())
        return Deployed(signs, w.abs().mean().expand(len(w)), torch.zeros(1))
