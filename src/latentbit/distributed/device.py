"""Where to compute: the device that a user names, or the best one that this machine has."""

import torch

from latentbit import distributed
from latentbit.errors import LatentbitError


class NoSuchDevice(LatentbitError):
    """A device that torch cannot use on this machine."""


def choose_device(wanted: str) -> torch.device:
    """auto: cuda, then mps, then cpu. Under torchrun each process takes the GPU of its local rank."""
    if wanted == "auto":
        wanted = (
            "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        )
    if wanted == "cuda":
        if not torch.cuda.is_available():
            raise NoSuchDevice("device=cuda, but this machine has none that torch can use: take device=cpu")
        torch.cuda.set_device(distributed.local_rank())
        return torch.device("cuda", distributed.local_rank())
    if wanted == "mps" and not torch.backends.mps.is_available():
        raise NoSuchDevice("device=mps, but this machine has none that torch can use: take device=cpu")
    return torch.device(wanted)
