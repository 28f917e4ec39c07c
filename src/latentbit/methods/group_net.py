"""Group-Net, layer by layer: K binary filters that learn apart from each other, whose results are added.

    y = sum_k scale_k (sign(x) conv B_k),  B_k = mean|W_k| sign(W_k), one mean for all of W_k, dL/dW_k = dL/dB_k
    activations: ApproxSign;  scale_k learned, from uniform in [0, 1]

Source: Zhuang et al., "Structured Binary Neural Networks for Accurate Image Classification and Semantic Segmentation",
    2019: its release (bohanzhuang/Group-Net-image-classification), the layers. Confidence: high.
Exact: value and gradient of weights, activations and scales, K = 5.
Differs: this is its decomposition of layers. That of whole blocks, where K copies of a block with BatchNorms of their
    own are averaged, and the soft gates between them, are a network and left out. The release pads maps with +1, here
    a border adds nothing. The first W_k is the weight of the layer, the others start normal with the same deviation.
    The latent view computes with sum scale_k W_k.
    BENN, the other ensemble, averages or boosts whole binary networks: nothing in their layers differs.
Packs: yes, as K binary layers that share one sign and whose results are added.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, deploy_sum


class GroupNet(Binarizer):
    bases: Annotated[int, Range(1, 16)] = 5
    """K: binary filters that stand for one real filter, each with weights of its own."""

    def setup(self, layer: BinaryLayer) -> None:
        w = layer.weight.detach()
        self.others = nn.Parameter(torch.randn(self.bases - 1, *w.shape) * w.std(correction=0))
        self.scales = nn.Parameter(torch.rand(self.bases))

    def stacked(self, w: Tensor) -> Tensor:
        """All W_k, (K, shape of W)."""
        return torch.cat([w.unsqueeze(0), self.others])

    def latent_weight(self, w: Tensor) -> Tensor:
        return torch.tensordot(self.scales, self.stacked(w), 1)

    def weight(self, w: Tensor) -> Tensor:
        ws = self.stacked(w)
        sizes = ws.detach().flatten(1).abs().mean(1).view(-1, *[1] * w.dim())
        return torch.tensordot(self.scales, ops.straight_through(sizes * ops.sign(ws.detach()), ws), 1)

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(x)

    def deploy(self, w: Tensor) -> Deployed:
        return deploy_sum(
            [
                Deployed(ops.sign(one), (scale * one.abs().mean()).expand(len(w)), torch.zeros(1))
                for scale, one in zip(self.scales, self.stacked(w), strict=True)
            ]
        )
