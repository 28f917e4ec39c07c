"""BatchNorm over the joint batch of all processes."""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from latentbit.distributed import sum_over_processes, world_size


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
        # bf16 has 8 bits: neither sums nor the count of values survive in it.
        x = input if input.dtype == torch.float64 else input.float()
        count = x.new_tensor([x.numel() / x.shape[1]])
        sums = sum_over_processes(torch.cat([x.sum(rest), count]))
        n, mean = sums[-1].detach(), sums[:-1] / sums[-1].detach()
        shape = [1, -1] + [1] * (x.dim() - 2)
        # Squares of the centred values: E[x^2] - E[x]^2 cancels where the mean is large.
        centred = x - mean.view(shape)
        var = sum_over_processes(centred.square().sum(rest)) / n
        self._update_running(mean.detach(), var.detach(), n)
        normal = centred * torch.rsqrt(var + self.eps).view(shape)
        if self.affine:
            normal = normal * self.weight.view(shape) + self.bias.view(shape)
        return normal.to(input.dtype)

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
