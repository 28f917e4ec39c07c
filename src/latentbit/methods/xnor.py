"""XNOR-Net: alpha * sign(W) with alpha = mean |W| per output channel, and the gradient flows through alpha too.

    dL/dW = alpha g 1[|W| <= 1] + sign(W) mean(g sign(W)),  g = dL/d(alpha B)
    after every step W loses its mean over input channels, if it has several, and is clipped to [-1, 1]

Source: Rastegari et al., "XNOR-Net", 2016, and its release. Confidence: high.
Exact: the gradient through alpha, centring and clipping.
Differs: without the map K of input scales, as the release (xnor_k has it). A depthwise filter, which sees one
    channel, is not centred: nothing would be left of it.
Packs: yes.
"""

import torch
from torch import Tensor

from latentbit import ops
from latentbit.methods.parts.binarizer import Binarizer, Deployed, mean_abs, per_output


class XNOR(Binarizer):
    def weight(self, w: Tensor) -> Tensor:
        return ops.sign_clip(w) * per_output(mean_abs(w), w)

    def after_step(self, w: Tensor, lr: float) -> None:
        if w.shape[1] > 1:  # of a depthwise filter, which sees one channel, nothing would be left
            w -= w.mean(dim=1, keepdim=True)
        w.clamp_(-1, 1)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), mean_abs(w), torch.zeros(1))
