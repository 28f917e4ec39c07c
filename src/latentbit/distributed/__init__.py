"""What the losses and the loop need of torch.distributed; one process and many run the same code.

Sums and gathers carry gradients. Their backward adds up what every process wants of a value, so that DDP,
which averages over processes, ends at the gradient of the joint batch.
"""

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from latentbit.distributed.meeting import meet


def world_size() -> int:
    """Number of processes that train together; 1 without torchrun."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process; 0 writes the files."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def local_rank() -> int:
    """Number of this process on its machine, which is the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def restarted() -> bool:
    """True if torchrun has restarted the workers; every machine counts its own restarts, so all are asked."""
    count = torch.tensor([float(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))])
    return bool(sum_over_processes(count.to(_device())) > 0)


def _device() -> torch.device:
    """Where the backend exchanges tensors."""
    on_gpu = world_size() > 1 and dist.get_backend() == "nccl"
    return torch.device("cuda", local_rank()) if on_gpu else torch.device("cpu")


def text_of_rank_0(text: str) -> str:
    """What rank 0 brings, on every process."""
    if world_size() == 1:
        return text
    content = torch.zeros(4096, dtype=torch.uint8, device=_device())
    if rank() == 0:
        raw = text.encode()
        content[: len(raw)] = torch.tensor(list(raw), dtype=torch.uint8)
    dist.broadcast(content, 0)
    return bytes(content.tolist()).rstrip(b"\0").decode()


@torch.no_grad()
def take_buffers_of_rank_0(module: nn.Module) -> None:
    """Let every process have the statistics that rank 0 saves; without synchronised BatchNorm they drift apart."""
    if world_size() > 1:
        for buffer in module.buffers():
            dist.broadcast(buffer, 0)


def start(device: torch.device) -> bool:
    """Join the process group if torchrun started us; True if so."""
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        return False
    store, rank, size = next(dist.rendezvous("env://"))
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=meet(store, rank, size), rank=rank, world_size=size)
    return True


def stop() -> None:
    """Leave the process group, if there is one, and end its threads."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        total = grads[0].clone()
        dist.all_reduce(total)
        return total


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        parts = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        total = grads[0].clone()
        dist.all_reduce(total)
        return total.chunk(world_size())[rank()]


def sum_over_processes(x: Tensor) -> Tensor:
    """Sum of x over all processes, the same on each."""
    return _Sum.apply(x) if world_size() > 1 else x


def gather_over_processes(x: Tensor) -> Tensor:
    """Rows of x of all processes, in the order of their ranks. Every process must bring the same number."""
    return _Gather.apply(x) if world_size() > 1 else x
