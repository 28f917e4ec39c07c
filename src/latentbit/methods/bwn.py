"""Binary-Weight-Networks: the weights of XNOR-Net, alpha * sign(W), with real activations.

    y = x conv alpha sign(W),  alpha = mean |W| per output channel, gradients and centring as xnor;  x stays as it is

Source: Rastegari et al., "XNOR-Net", 2016, which has both, and its release. Confidence: high.
Exact: value and gradient of weights, centring and clipping, as xnor has them.
Differs: nothing in the layer.
Packs: yes, as a real layer whose weights are +-alpha in 8 bits; there is no kernel of 1-bit weights and real inputs.
"""

import dataclasses

from torch import Tensor

from latentbit.methods.parts.binarizer import Deployed
from latentbit.methods.xnor import XNOR


class BWN(XNOR):
    real_input = True

    def deploy(self, w: Tensor) -> Deployed:
        return dataclasses.replace(super().deploy(w), real_input=True)
