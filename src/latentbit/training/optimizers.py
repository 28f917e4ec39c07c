"""From a recipe to a torch optimizer; Bop, for binary weights without latent ones.

    Bop   m <- (1 - gamma) m + gamma dL/dB,   B <- -B where |m| > tau and sign(m) = sign(B)

Paper: Helwegen et al., "Latent Weights Do Not Exist", 2019. Confidence: high (released code).
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from latentbit import ops
from latentbit.layers import BINARY_LAYERS
from latentbit.recipes import Optim


def create(objective: nn.Module, optim: Optim) -> Optimizer:
    """The optimizer of a recipe over all parameters of `objective`, latent weights included.

    A method may bring its own rule for the weights of binary layers, and may exempt its own parameters from
    weight decay; `lr` of every group is the recipe's, to be set by the schedule.
    """
    ruled: dict[Callable[..., Optimizer], list[nn.Parameter]] = {}
    undecayed: set[int] = set()
    for layer in objective.modules():
        if isinstance(layer, BINARY_LAYERS):
            method = layer.binarizer
            if method.optimizer is not None:
                ruled.setdefault(method.optimizer, []).append(layer.weight)
            if not method.decays:
                undecayed |= {id(p) for p in method.parameters()}
    elsewhere = {id(p) for weights in ruled.values() for p in weights}
    rest = [p for p in objective.parameters() if p.requires_grad and id(p) not in elsewhere]
    groups: list[dict[str, Any]] = [{"params": [p for p in rest if id(p) not in undecayed]}]
    if undecayed:
        groups.append({"params": [p for p in rest if id(p) in undecayed], "weight_decay": 0.0})
    # One kernel over all tensors: the loop over a hundred small ones costs several milliseconds a step.
    fused = all(p.device.type in ("cpu", "cuda") for p in rest)
    common: dict[str, Any] = {"lr": optim.lr, "weight_decay": optim.weight_decay, "fused": fused}
    main: Optimizer
    if optim.optimizer == "adam":
        main = torch.optim.Adam(groups, **common)
    elif optim.optimizer == "adamw":
        main = torch.optim.AdamW(groups, **common)
    else:
        main = torch.optim.SGD(groups, momentum=optim.momentum, nesterov=optim.momentum > 0, **common)
    if not ruled:
        return main
    return Combined([main, *(rule(_unique(weights), lr=optim.lr) for rule, weights in ruled.items())])


def _unique(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Both views of a layer hold the same weight."""
    return list({id(p): p for p in parameters}.values())


class Bop(Optimizer):
    """Flips a binary weight when the running mean of its gradient is steady and strong enough.

    gamma follows the schedule of the learning rate, gamma_t = gamma * lr_t / lr, as published runs decay it.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1.0, gamma: float = 1e-3, tau: float = 1e-6
    ) -> None:
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


class Combined(Optimizer):
    """Several optimizers over disjoint parameters behind the interface of one, state dict included."""

    def __init__(self, parts: list[Optimizer]) -> None:
        groups = [group for part in parts for group in part.param_groups]
        super().__init__([{"params": group["params"]} for group in groups], {})
        self.param_groups = groups
        self.parts = parts
        self._share()

    def _share(self) -> None:
        """Let every part work on this object's groups and state, so that there is one of each."""
        first = 0
        for part in self.parts:
            part.state = self.state
            part.param_groups = self.param_groups[first : first + len(part.param_groups)]
            first += len(part.param_groups)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()
