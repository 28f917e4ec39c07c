"""Random crops and normalisation of a whole batch at once, on the device the batch is on.

Padding is black, put on before normalisation: so do the pipelines whose accuracies the paper compares
with (a border of value 0 after normalisation would be mean grey), and bytes cost a quarter of floats.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def crop(images: Tensor, draws: Tensor, pad: int, flip: bool) -> Tensor:
    """Pad, crop back to size at a random place, mirror half: (N, C, H, W) bytes, (N, 3) integers >= 0."""
    if pad:
        height, width = images.shape[-2:]
        places = F.pad(images, (pad, pad, pad, pad)).unfold(2, height, 1).unfold(3, width, 1)
        at = draws[:, :2] % (2 * pad + 1)
        # unfold copies nothing; the index reads each image's window alone.
        images = places[torch.arange(len(at), device=at.device), :, at[:, 0], at[:, 1]]
    if flip:
        mirrored = (draws[:, 2] % 2 == 1).view(-1, 1, 1, 1)
        images = torch.where(mirrored, images.flip(3), images)
    return images


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(x / 255 - mean) / std; mean and std are (1, C, 1, 1)."""
    # In place on the one copy: a broadcast addcmul takes four times as long on a CPU.
    return images.to(torch.float32, copy=True).mul_(1 / (255 * std)).sub_(mean / std)
