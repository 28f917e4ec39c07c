"""BinaryConnect: binary weights without a scale, real activations.

    y = x conv sign(W),  dL/dW = dL/dB,  W <- clamp(W, -1, 1) after every step;  x stays as it is

Source: Courbariaux et al., "BinaryConnect: Training Deep Neural Networks with Binary Weights during Propagations",
    2015, and the release of BNN, by the same authors, whose weights are these. Confidence: high.
Exact: value, gradient and clipping of its deterministic form.
Differs: the stochastic form, which draws +1 with probability clip((W + 1) / 2, 0, 1), is left out. Its networks
    binarize first and last layers too: binarize_(model, "binary_connect", keep=[]). Their loss and the learning rate
    of each layer are up to the recipe.
Packs: yes, as a real layer whose weights are +-1 in 8 bits; there is no kernel of 1-bit weights and real inputs.
"""

import dataclasses

from torch import Tensor

from latentbit.methods.bnn import BNN
from latentbit.methods.parts.binarizer import Deployed


class BinaryConnect(BNN):
    real_input = True

    def deploy(self, w: Tensor) -> Deployed:
        return dataclasses.replace(super().deploy(w), real_input=True)
