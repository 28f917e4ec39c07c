"""ReActNet, its RSign: a learned shift per channel in front of the sign; weights and estimators of Bi-Real Net.

    sign(x + b),  dL/dx = g max(0, 2 - 2|x + b|),  b starts at 0 and is the threshold -b at inference

Source: Liu et al., "ReActNet", 2020, and its release. Confidence: high.
Exact: RSign, weights and estimators.
Differs: RPReLU belongs to the network (activation="rprelu"), distillation and the training in two steps to loss and
    recipe.
Packs: yes.
"""

from torch import Tensor, nn

from latentbit import ops
from latentbit.methods.bireal import BiReal
from latentbit.methods.parts.binarizer import BinaryLayer, Deployed, mean_abs, per_input


class ReActNet(BiReal):
    def setup(self, layer: BinaryLayer) -> None:
        super().setup(layer)
        self.shift = nn.Parameter(per_input(layer, 0.0))

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(x + self.shift)

    def latent_input(self, x: Tensor) -> Tensor:
        return ops.hard_tanh(x + self.shift)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), mean_abs(w), -self.shift.flatten())
