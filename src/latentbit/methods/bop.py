"""Bop: no latent weights. The layer holds B itself, and an optimizer of its own flips it.

    y = sign(x) conv B,  dL/dB goes to the optimizer,  dL/dx = g 1[|x| <= 1]
    m <- (1 - gamma) m + gamma dL/dB,   B <- -B where |m| > tau and sign(m) = sign(B)

Source: Helwegen et al., "Latent Weights Do Not Exist", 2019, and its release. Confidence: high.
Exact: the rule that flips B, with a running mean that starts at 0.
Differs: gamma falls in steps of the training (gamma_parts, as the release on CIFAR-10) or with the learning rate (as
    there on ImageNet, but to 0, not to a hundredth). There being no W, the latent view differs from the binary one by
    its activations only.
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
    """Share of the newest gradient in its running mean; falls with the learning rate, unless gamma_parts says how."""
    gamma_parts: Annotated[int, Range(1, 1000)] = 1
    """Equal parts of the training, each with a tenth of the gamma of the one before; 1: gamma falls with the learning
    rate. The release has 5 on CIFAR-10."""
    tau: Annotated[float, Range(0)] = 1e-6
    """How strong the running mean of a gradient must be to flip its bit; higher flips fewer."""

    def setup(self, layer: BinaryLayer) -> None:
        with torch.no_grad():
            layer.weight.copy_(ops.sign(layer.weight))
        self.progress = 0.0  # of no forward, only of the optimizer: no buffer

    def set_progress(self, progress: float) -> None:
        self.progress = progress

    def follows_progress(self) -> bool:
        return self.gamma_parts > 1

    def optimizer(self, weights: list[nn.Parameter], lr: float) -> Optimizer:
        falls = self._falls if self.gamma_parts > 1 else None
        return FlipOptimizer(weights, lr=lr, gamma=self.gamma, tau=self.tau, falls=falls)

    def _falls(self) -> float:
        """What is left of gamma in this part of the training."""
        part = int(
            self.progress * self.gamma_parts + 1e-9
        )  # 3 of 10 epochs in 10 parts are 3 parts, not 2.9999
        return 0.1 ** min(part, self.gamma_parts - 1)

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_identity(w)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), torch.ones(len(w)), torch.zeros(1))


class FlipOptimizer(Optimizer):
    """Flips a binary weight when the running mean of its gradient is steady and strong enough.

    gamma follows the schedule of the learning rate, gamma_t = gamma * lr_t / lr, as the release does on ImageNet, or
    is gamma * falls() where that is given.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        gamma: float,
        tau: float,
        falls: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(params, {"lr": lr, "peak_lr": lr, "gamma": gamma, "tau": tau})
        self.falls = falls

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            gamma = group["gamma"] * (self.falls() if self.falls else group["lr"] / group["peak_lr"])
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
