"""CI-BNN: channels of a binary convolution correct each other where the source is decided (interacted bit-count).

    y_t += c (1[y_s >= T] - 1[y_s <= -T])  or  y_t -= c (1[y_s >= T] + 1[y_s <= -T]),  gradient 1 to y_t, none to y_s

Source: Wang et al., "Learning Channel-wise Interactions", 2019, and its released demo. Confidence: high on this rule.
Exact: the interacted bit-count and its gradient.
Differs: the agent that mines the edges (s, t) by reinforcement learning is left out, each channel has one random,
    fixed source. T = 200 and c = 100 are taken relative to the 720 products of its 80-channel layers. No claim to its
    accuracy.
Packs: no, output channels correct each other between convolution and BatchNorm, which no op of the format does.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, Multiply, NotDeployable


class CIBNN(Binarizer):
    threshold: Annotated[float, Range(0, 1)] = 200 / 720
    """T, as a share of the products that a bit count sums: from there on a source is decided."""
    correction: Annotated[float, Range(0, 1)] = 100 / 720
    """c, as a share of the products that a bit count sums."""

    def setup(self, layer: BinaryLayer) -> None:
        n_channels = len(layer.weight)
        # Neighbours on a random ring, so that no channel is its own source.
        ring = torch.randperm(n_channels)
        source = torch.empty_like(ring)
        source[ring] = ring.roll(1)
        self.source = nn.Buffer(source)
        self.excites = nn.Buffer(torch.rand(n_channels) < 0.5)
        self.n_products = layer.weight[0].numel()
        self.channel_dim = 1 - layer.weight.dim()

    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_clip(w)

    def product(self, x: Tensor, w: Tensor, multiply: Multiply) -> Tensor:
        y = multiply(self.input(x), self.weight(w))
        return y + self._correction(y.detach())

    def _correction(self, y: Tensor) -> Tensor:
        source = y.index_select(self.channel_dim, self.source)
        high = (source >= self.threshold * self.n_products).to(y.dtype)
        low = (source <= -self.threshold * self.n_products).to(y.dtype)
        excites = self.excites.view(-1, *([1] * (-1 - self.channel_dim)))
        return self.correction * self.n_products * torch.where(excites, high - low, -(high + low))

    def deploy(self, w: Tensor) -> Deployed:
        raise NotDeployable(
            "method cibnn adds corrections between the output channels of a layer, pixel by pixel, to the bit count: "
            "a packed file has one scale and one offset per channel"
        )
