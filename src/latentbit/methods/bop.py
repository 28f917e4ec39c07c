"""Bop: no latent weights. The layer holds B itself, and an optimizer of its own flips it.

    y = sign(x) conv B,  dL/dB goes to the optimizer,  dL/dx = g 1[|x| <= 1]
    m <- (1 - gamma) m + gamma dL/dB,   B <- -B where |m| > tau and sign(m) = sign(B)

Source: Helwegen et al., "Latent Weights Do Not Exist", 2019, and its release. Confidence: high.
Exact: the rule that flips B, with a running mean that starts at 0.
Differs: gamma has no schedule of its own, it falls with the learning rate. There being no W, the latent view differs
    from the binary one by its activations only.
Packs: yes.
"""

from collections.abc import Callable, Iterable
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed


class Bop(Binarizer):
    gamma: Annotated[float, Range(1e-12, 1)] = 1e-3
    """Share of the newest gradient in its running mean; falls with the learning rate."""
    tau: Annotated[float, Range(0)] = 1e-6
    """How strong the running mean of a gradient must be to flip its bit; higher flips fewer."""

    def setup(self, layer: BinaryLayer) -> None:
        with torch.no_grad():
            layer.weight.copy_(ops.sign(layer.weight))

    def optimizer(self, weights: list[nn.Parameter], lr: float) -> Optimizer:
        return FlipOptimizer(weights, lr=lr, gamma=self.gamma, tau=self.tau)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(w)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), torch.ones(len(w)), torch.zeros(1))


class FlipOptimizer(Optimizer):
    """Flips a binary weight when the running mean of its gradient is steady and strong enough.

    gamma follows the schedule of the learning rate, gamma_t = gamma * lr_t / lr, as published runs decay it.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, gamma: float, tau: float) -> None:
        super().__init__(params, {"lr": lr, "peak_lr": lr, "gamma": gamma, "tau": tau})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            gamma = group["gamma"] * group["lr"] / group["peak_lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"].lerp_(p.grad, gamma)
                b = ops.sign(p)
                p.copy_(torch.where(m * b > group["tau"], -b, b))
        return loss
