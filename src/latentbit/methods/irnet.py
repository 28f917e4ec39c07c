"""IR-Net: the sign of standardized filters, scaled by a power of two; estimators that sharpen over training (EDE).

    v = (W - mean) / std per filter (gradient flows),  B = sign(v) 2^round(log2 mean|v|), scale without gradient
    d sign(v)/dv = k t (1 - tanh^2(t v)) for weights and, where |x| <= 1, for activations,  t from t_min to t_max

Source: Qin et al., "Forward and Backward Information Retention", 2020, and its release. Confidence: high.
Exact: standardized filters, the scale, EDE and its schedule (VGG-small of the release starts at t_min=0.1).
Differs: its networks have a Hardtanh in front of every convolution, which cuts the gradient outside [-1, 1]; the cut
    is here, so that the estimator, the identity at first, also trains without one.
Packs: yes.
"""

from typing import Annotated

import torch
from torch import Tensor

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import (
    Binarizer,
    BinaryLayer,
    Deployed,
    mean_abs,
    need_spread,
    per_output,
)
from latentbit.methods.parts.temperature import Temperature


def power_of_two(scale: Tensor) -> Tensor:
    """The power of two nearest in the exponent; a constant filter (scale 0) keeps 1."""
    return torch.where(scale > 0, torch.exp2(torch.round(torch.log2(scale))), torch.ones_like(scale))


class IRNet(Binarizer):
    t_min: Annotated[float, Range(1e-6)] = 1e-3
    """Temperature t at the start of training; the estimator is nearly the identity there."""
    t_max: Annotated[float, Range(1e-6)] = 10.0
    """Temperature t at the end of training; the higher, the narrower the estimator."""

    def setup(self, layer: BinaryLayer) -> None:
        need_spread(self, layer)
        self.temperature = Temperature(self.t_min, self.t_max)

    def weight(self, w: Tensor) -> Tensor:
        v = ops.standardize(w)
        scale = power_of_two(mean_abs(v.detach()))
        return ops.sign_tanh(v, self.temperature.t, self.temperature.k) * per_output(scale, w)

    def input(self, x: Tensor) -> Tensor:
        return ops.sign_tanh(ops.hard_tanh(x), self.temperature.t, self.temperature.k)

    def latent_weight(self, w: Tensor) -> Tensor:
        return ops.standardize(w)

    def set_progress(self, progress: float) -> None:
        self.temperature.set(progress)

    def deploy(self, w: Tensor) -> Deployed:
        v = ops.standardize(w)
        return Deployed(ops.sign(v), power_of_two(mean_abs(v)), torch.zeros(1))
