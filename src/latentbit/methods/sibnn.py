"""Si-BNN: activations 0 and 1 with a learned threshold and window per channel; alpha * sign(W), gradient through alpha.

    u = s (x - theta),  a = 1[u >= 0],  da/du = 1[-0.3 < u < 1];  W <- clamp(W, -1, 1) after every step
    dL/dW = g 1[|W| <= 1] (1 - 1/n) + sign(W) mean(g sign(W)),  g = dL/d(alpha B)

Paper: Wang et al., "Sparsity-Inducing Binarized Neural Networks", 2020 and TNNLS 2022. Confidence: high for the 2022
release. Its second BatchNorm, in front of the threshold, belongs to the network and is left out.
"""

from torch import Tensor, nn

from latentbit import ops
from latentbit.methods.parts.binarizer import (
    Binarizer,
    BinaryLayer,
    Deployed,
    NotDeployable,
    deploy_zero_one,
    mean_abs,
    per_input,
    per_output,
)

WINDOW = (-0.3, 1.0)


class SiBNN(Binarizer):
    decays = False

    def __init__(self, layer: BinaryLayer) -> None:
        super().__init__(layer)
        self.threshold = nn.Parameter(per_input(layer, 0.0))
        self.slope = nn.Parameter(per_input(layer, 1.0))

    def weight(self, w: Tensor) -> Tensor:
        b = ops.sign(w.detach())
        alpha = per_output(mean_abs(w), w)
        soft = w.clamp(-1, 1) * (1 - 1 / w[0].numel()) + alpha * b
        return ops.straight_through(alpha.detach() * b, soft)

    def input(self, x: Tensor) -> Tensor:
        u = self.slope * (x - self.threshold)
        return ops.straight_through(ops.step(u.detach()), u.clamp(*WINDOW))

    def latent_input(self, x: Tensor) -> Tensor:
        return (self.slope * (x - self.threshold)).clamp(*WINDOW)

    def after_step(self, w: Tensor, lr: float) -> None:
        w.clamp_(-1, 1)

    def deploy(self, w: Tensor) -> Deployed:
        # Meta tensors, on which costs are counted, have no values to refuse.
        if not self.slope.is_meta and bool((self.slope <= 0).any()):
            raise NotDeployable(
                "method sibnn learned a slope that is not positive for some input channel: there x <= theta switches "
                "the bit on, which a threshold of a packed file can not say"
            )
        return deploy_zero_one(ops.sign(w), mean_abs(w), self.threshold.flatten())
