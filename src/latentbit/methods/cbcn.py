"""CBCN: of every four filters one is learned, the others are it turned by 90, 180 and 270 degrees; XNOR-Net's rule.

    rotation: the centre of a 3x3 filter stays, its 8 border taps move on by two places
    the gradients of the four copies are turned back and averaged

Source: Liu et al., "Circulant Binary Convolutional Networks", 2019: abstract and figures. Confidence: medium on the
    idea, low on how many orientations its tables use (4 is from memory).
Exact: the rotation of a 3x3 filter, and that its copies share one gradient.
Differs: a given network keeps its channels and learns a quarter of its filters, where the published one grows by the
    copies. Its center loss is a key of the recipe (center).
Packs: yes.
"""

from typing import Literal

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import (
    Binarizer,
    BinaryLayer,
    Deployed,
    Unsuitable,
    mean_abs,
    per_output,
)

RING = (0, 1, 2, 5, 8, 7, 6, 3)
"""Border taps of a 3x3 filter in clockwise order."""


def rotate(filters: Tensor, places: int) -> Tensor:
    """(..., 3, 3) with its border taps moved clockwise; 2 places are 90 degrees."""
    taken_from = list(range(9))
    for i, tap in enumerate(RING):
        taken_from[tap] = RING[(i - places) % 8]
    return filters.flatten(-2)[..., taken_from].view_as(filters)


class CBCN(Binarizer):
    orientations: Literal[2, 4, 8] = 4
    """Filters made from one that is learned; the border of a 3x3 filter has 8 places to turn to."""

    def setup(self, layer: BinaryLayer) -> None:
        shape = tuple(layer.weight.shape)
        if shape[2:] != (3, 3) or shape[0] % self.orientations:
            raise Unsuitable(
                f"method cbcn rotates 3x3 filters in groups of {self.orientations}, this layer has weights {shape}: "
                "keep it real with binarize_(keep=...) or choose another method"
            )
        with torch.no_grad():
            learned = layer.weight.detach().clone().unflatten(0, (-1, self.orientations))
            copies = [rotate(learned[:, 0], self._places(i)) for i in range(self.orientations)]
            layer.weight.copy_(torch.stack(copies, 1).flatten(0, 1))

    def _places(self, orientation: int) -> int:
        return orientation * 8 // self.orientations

    def latent_weight(self, w: Tensor) -> Tensor:
        """W with its copies tied: turned back, averaged, turned again. Leaves a tied W as it is."""
        copies = w.unflatten(0, (-1, self.orientations))
        turned_back = [rotate(copies[:, i], -self._places(i)) for i in range(self.orientations)]
        learned = torch.stack(turned_back).mean(0)
        return torch.stack([rotate(learned, self._places(i)) for i in range(self.orientations)], 1).flatten(
            0, 1
        )

    def weight(self, w: Tensor) -> Tensor:
        tied = self.latent_weight(w)
        return ops.sign_clip(tied) * per_output(mean_abs(tied), w)

    def deploy(self, w: Tensor) -> Deployed:
        tied = self.latent_weight(w)
        return Deployed(ops.sign(tied), mean_abs(tied), torch.zeros(1))
