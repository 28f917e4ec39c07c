"""How latent weights lie: a histogram per binary layer and the shares that tell how training goes on.

near zero: |W| < 0.1 mean |W| of the layer, where a small step flips the bit. beyond one: |W| > 1, where the
straight-through estimator passes no gradient to weights that clip it.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from latentbit.layers import BINARY_LAYERS

NEAR = 0.1
BINS = 60


@dataclass(frozen=True)
class LayerWeights:
    """One layer's latent weights; `counts` are of BINS equal bins over -limit ... limit, the ends take the rest."""

    name: str
    n: int
    mean_abs: float
    near_zero: float
    beyond_one: float
    positive: float
    counts: list[int]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def latent_weights(model: nn.Module) -> tuple[float, list[LayerWeights]]:
    """The limit of the histograms, the same for all layers, and every layer in module order."""
    found = {
        name: module.weight.detach().double().cpu().flatten().numpy()
        for name, module in model.named_modules()
        if isinstance(module, BINARY_LAYERS)
    }
    limit = max((float(np.quantile(np.abs(w), 0.999)) for w in found.values()), default=1.0)
    return limit, [layer_weights(name, w, limit) for name, w in found.items()]


def layer_weights(name: str, w: np.ndarray, limit: float) -> LayerWeights:
    """The numbers of one layer's weights (n,)."""
    size = np.abs(w)
    counts, _ = np.histogram(np.clip(w, -limit, limit), bins=BINS, range=(-limit, limit))
    return LayerWeights(
        name=name,
        n=int(w.size),
        mean_abs=float(size.mean()),
        near_zero=float((size < NEAR * size.mean()).mean()),
        beyond_one=float((size > 1).mean()),
        positive=float((w >= 0).mean()),
        counts=counts.tolist(),
    )
