"""Whether compiling the network pays, and in what precision its products are computed."""

import shutil
from contextlib import AbstractContextManager, nullcontext

import torch

COMPILE_PAYS_FROM = 3000
"""Steps from which torch.compile earns back the minute or two that it takes. cifar10_16px on an Intel Cascade Lake:
112 s, then 0.12 s a step instead of 0.28, so even after 700. More than that, as smaller networks gain less a step."""


def can_compile(device: torch.device) -> bool:
    """True where torch.compile has what it needs: on a CPU a C++ compiler."""
    if device.type == "cpu":
        return shutil.which("g++") is not None or shutil.which("clang++") is not None
    return device.type == "cuda"


def compile_pays(wanted: str, device: torch.device, steps: int) -> bool:
    """For a run of so many steps in all. auto: on long runs, where the device can."""
    if wanted != "auto":
        return wanted == "on"
    return can_compile(device) and steps >= COMPILE_PAYS_FROM


def autocast_for(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """auto: bf16 on GPUs that have it."""
    if precision == "auto":
        # Torch also counts GPUs that emulate it, where it is slower than fp32.
        has = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        precision = "bf16" if has else "fp32"
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
