"""Where to train, in what precision, and whether compiling pays there."""

import shutil
from contextlib import AbstractContextManager, nullcontext

import torch

from latentbit import distributed
from latentbit.errors import LatentbitError

COMPILE_PAYS_FROM = 4000
"""Steps from which torch.compile earns back the minute or two that it takes."""


class NoSuchDevice(LatentbitError):
    """A device that torch can not use on this machine."""


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


def compile_pays(wanted: str, device: torch.device, steps: int) -> bool:
    """auto: on long runs, where there is a compiler for the device."""
    if wanted != "auto":
        return wanted == "on"
    if device.type == "cpu" and shutil.which("g++") is None and shutil.which("clang++") is None:
        return False
    return device.type in ("cpu", "cuda") and steps >= COMPILE_PAYS_FROM


def autocast_for(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """auto: bf16 on GPUs that have it."""
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
