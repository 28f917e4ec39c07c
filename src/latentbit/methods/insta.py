"""INSTA-BNN, its threshold: it moves with the third moment of each map of the image; weights of Bi-Real Net.

    sign(x - (a E[x^3] + b)),  E over the pixels of a channel of one image, a and b learned per channel
    dL/d(x - threshold) = g max(0, 2 - 2|x - threshold|)

Source: Lee et al., "INSTA-BNN: Binary Neural Network with INSTAnce-aware Threshold", 2023: what the paper says of its
    threshold; no release was found. Confidence: medium.
Exact: the threshold and the estimators.
Differs: a and b start at 0, which is ReActNet's start; where the paper starts them was not found. The third moment is
    that of the layer's input: the paper has a BatchNorm in front, as the networks of this package have. Its PReLU with
    moving shifts and its variant with a squeeze-and-excitation block (INSTA-Th+) belong to the network and are left
    out.
Packs: yes: products and a mean in front of the sign. A value on the threshold up to rounding may fall on either side.
"""

from torch import Tensor, nn

from latentbit import ops
from latentbit.methods.bireal import BiReal
from latentbit.methods.parts.binarizer import BinaryLayer, Deployed, mean_abs, per_input


class INSTA(BiReal):
    def setup(self, layer: BinaryLayer) -> None:
        super().setup(layer)
        self.channel_dim = 1 - layer.weight.dim()
        self.slope = nn.Parameter(per_input(layer, 0.0))
        self.threshold = nn.Parameter(per_input(layer, 0.0))

    def moved(self, x: Tensor) -> Tensor:
        """x minus the threshold of its image and channel."""
        cubes = x * x * x
        pixels = [dim for dim in range(1, x.dim()) if dim != x.dim() + self.channel_dim]
        if pixels:
            cubes = cubes.mean(pixels, keepdim=True)
        return x - self.slope * cubes - self.threshold

    def input(self, x: Tensor) -> Tensor:
        return ops.approx_sign(self.moved(x))

    def latent_input(self, x: Tensor) -> Tensor:
        return ops.hard_tanh(self.moved(x))

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(ops.sign(w), mean_abs(w), self.threshold.flatten(), cubic=self.slope.flatten())
