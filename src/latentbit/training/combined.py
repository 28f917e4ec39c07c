"""Several optimizers as one: for networks in which a method brings its own rule for the weights of binary layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


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
