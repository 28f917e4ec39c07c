"""XNOR-Net with its map K of input scales, which the released code drops.

    y = (sign(x) conv alpha B) K,   K = mean over channels of |x|, averaged over the window of the filter

Source: Rastegari et al., "XNOR-Net", 2016. Confidence: high on the formula.
Exact: K, and all that xnor has.
Differs: that the gradient flows through K is ours.
Packs: yes, with the mean of the real input under the filter as a small real convolution of |x|.
"""

import dataclasses

import torch
from torch import Tensor, nn

from latentbit.methods.parts.binarizer import BinaryLayer, Deployed, Multiply
from latentbit.methods.xnor import XNOR


class XNORWithK(XNOR):
    def setup(self, layer: BinaryLayer) -> None:
        super().setup(layer)
        self.channel_dim = 1 - layer.weight.dim()
        self.groups = getattr(layer, "groups", 1)
        self.out_channels = len(layer.weight)
        window = torch.ones(self.groups, 1, *layer.weight.shape[2:])
        self.box = nn.Buffer(window / window[0].numel(), persistent=False)

    def product(self, x: Tensor, w: Tensor, multiply: Multiply) -> Tensor:
        return super().product(x, w, multiply) * self._scales(x, multiply)

    def _scales(self, x: Tensor, multiply: Multiply) -> Tensor:
        """K: the layer's own operation over the mean of |x|, one value per output pixel (and group)."""
        dim = self.channel_dim
        if dim == -1:
            return multiply(x.abs().mean(-1, keepdim=True), self.box)
        k = multiply(x.abs().unflatten(dim, (self.groups, -1)).mean(dim), self.box)
        return k.repeat_interleave(self.out_channels // self.groups, dim) if self.groups > 1 else k

    def deploy(self, w: Tensor) -> Deployed:
        return dataclasses.replace(super().deploy(w), windowed=True)
