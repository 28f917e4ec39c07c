"""The order in memory in which images go through a network: channels last where the network allows it.

Convolutions of a CPU want the channels of a pixel side by side. In the usual order they reorder every map on the way
in and out. `bench/train_step.py` measures what this saves.
"""

import torch
from torch import Tensor, nn


@torch.no_grad()
def fastest_layout(model: nn.Module, input_shape: tuple[int, int, int]) -> torch.memory_format:
    """channels_last, unless the network cannot compute on it: `x.view(len(x), -1)` refuses it, `flatten` does not."""
    device = next(model.parameters()).device
    if device.type not in ("cpu", "cuda"):
        return torch.contiguous_format
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()(
            torch.zeros(2, *input_shape, device=device).contiguous(memory_format=torch.channels_last)
        )
    except RuntimeError:
        return torch.contiguous_format
    finally:
        for module, mode in modes.items():
            module.training = mode
    return torch.channels_last


def in_layout(images: Tensor, layout: torch.memory_format) -> Tensor:
    """The same images in that order."""
    return images.contiguous(memory_format=layout) if images.dim() == 4 else images
