"""One linear map, shared by both views, into the space where the latent losses compare features.

learned: the paper's. Only attraction acts on it, so it can collapse to a constant. orthogonal: a frozen map with
orthonormal rows, which cannot. none: the features themselves. All three end in L2 normalisation.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Kind = Literal["learned", "orthogonal", "none"]


class Projection(nn.Module):
    """(N, n_features) -> (N, dim), rows of length 1."""

    rows: Tensor

    def __init__(self, n_features: int, dim: int, kind: Kind = "learned") -> None:
        super().__init__()
        if kind not in get_args(Kind):
            raise ValueError(f"projection {kind!r}: must be one of {', '.join(get_args(Kind))}")
        if kind == "orthogonal" and dim > n_features:
            raise ValueError(f"{dim} orthogonal rows do not fit into {n_features} features: lower dim")
        self.kind = kind
        self.dim = n_features if kind == "none" else dim
        if kind == "learned":
            self.linear = nn.Linear(n_features, dim)
        elif kind == "orthogonal":
            self.register_buffer("rows", nn.init.orthogonal_(torch.empty(dim, n_features)))

    def forward(self, features: Tensor) -> Tensor:
        if self.kind == "learned":
            features = self.linear(features)
        elif self.kind == "orthogonal":
            features = features @ self.rows.T
        return F.normalize(features, dim=1)


@torch.no_grad()
def spread(z: Tensor, labels: Tensor, num_classes: int) -> float:
    """1 - mean cosine between the class means of z: about 1 when classes point apart, 0 when all have collapsed."""
    sums = z.new_zeros(num_classes, z.shape[1]).index_add(0, labels, z)
    means = F.normalize(sums[sums.square().sum(1) > 0], dim=1)
    n = len(means)
    if n < 2:
        return float("nan")
    return 1 - float(((means @ means.T).sum() - n) / (n * (n - 1)))
