"""How sharp an estimator of sign is, from nearly the identity at first to a narrow peak at the end of training.

    t = t_min (t_max / t_min)^progress,   k = max(1 / t, 1)

The schedule of IR-Net's EDE (Qin et al., 2020), which RBNN and AdaBin took over. Confidence: high (released code).
"""

import math

import torch
from torch import Tensor, nn


class Temperature(nn.Module):
    """Holds t and k in buffers that are no part of a checkpoint: training sets them every epoch."""

    t: Tensor
    k: Tensor

    def __init__(self, t_min: float, t_max: float) -> None:
        super().__init__()
        self.t_min, self.t_max = t_min, t_max
        self.register_buffer("t", torch.empty(()), persistent=False)
        self.register_buffer("k", torch.empty(()), persistent=False)
        self.set(0.0)

    def set(self, progress: float) -> None:
        """Of the share of training that is done."""
        t = self.t_min * math.exp(progress * math.log(self.t_max / self.t_min))
        self.t.fill_(t)
        self.k.fill_(max(1 / t, 1.0))

    def extra_repr(self) -> str:
        return f"t_min={self.t_min}, t_max={self.t_max}"
