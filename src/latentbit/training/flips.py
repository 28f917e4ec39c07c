"""Flip rate: the share of binary weights whose sign changed over an epoch."""

import torch
from torch import Tensor, nn

from latentbit.layers import BINARY_LAYERS


@torch.no_grad()
def signs(model: nn.Module) -> dict[str, Tensor]:
    """Which weights of each binary layer are -1."""
    return {
        name: (module.binarizer.latent_weight(module.weight) < 0).cpu()
        for name, module in model.named_modules()
        if isinstance(module, BINARY_LAYERS)
    }


def flip_rate(before: dict[str, Tensor], after: dict[str, Tensor]) -> float:
    """Share of all binary weights that differ."""
    changed = sum(int((before[name] != after[name]).sum()) for name in before)
    return changed / max(1, sum(mask.numel() for mask in before.values()))
