"""What the losses and the loop need of torch.distributed; one process and many run the same code.

Sums and gathers carry gradients. Their backward adds up what every process wants of a value, so that DDP,
which averages over processes, ends at the gradient of the joint batch.
"""

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from latentbit.meeting import meet


def world_size() -> int:
    """Number of processes that train together; 1 without torchrun."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process; 0 writes the files."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def local_rank() -> int:
    """Number of this process on its machine, which is the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def restarts() -> int:
    """How often torchrun has restarted the workers of this job."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def text_of_rank_0(text: str) -> str:
    """What rank 0 brings, on every process."""
    if world_size() == 1:
        return text
    device = torch.device("cuda", local_rank()) if dist.get_backend() == "nccl" else torch.device("cpu")
    content = torch.zeros(4096, dtype=torch.uint8, device=device)
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
    """Leave the process group, if there is one."""
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


class SyncedBatchNorm(_BatchNorm):
    """BatchNorm over the joint batch of all processes, on any device; torch's SyncBatchNorm refuses the CPU."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2 dimensions (N, C, ...), got {input.dim()}")

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or world_size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        rest = [d for d in range(input.dim()) if d != 1]
        count = input.new_tensor([input.numel() / input.shape[1]])
        sums = sum_over_processes(torch.cat([input.sum(rest), count]))
        n, mean = sums[-1].detach(), sums[:-1] / sums[-1].detach()
        shape = [1, -1] + [1] * (input.dim() - 2)
        # Squares of the centred values: E[x^2] - E[x]^2 cancels where the mean is large.
        centred = input - mean.view(shape)
        var = sum_over_processes(centred.square().sum(rest)) / n
        self._update_running(mean.detach(), var.detach(), n)
        normal = centred * torch.rsqrt(var + self.eps).view(shape)
        if not self.affine:
            return normal
        return normal * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _update_running(self, mean: Tensor, var: Tensor, n: Tensor) -> None:
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(var * n / (n - 1), share)


def sync_batchnorm_(model: nn.Module) -> None:
    """Turn every BatchNorm of `model` into a SyncedBatchNorm over the same Parameters and statistics."""
    for parent in model.modules():
        for name, child in list(parent._modules.items()):
            if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
                synced = SyncedBatchNorm.__new__(SyncedBatchNorm)
                synced.__dict__ = child.__dict__
                setattr(parent, name, synced)
