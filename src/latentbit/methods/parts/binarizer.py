"""The seam where published methods plug in: how one layer turns W into B and its input into bits.

A method is one file in `methods/` with one subclass of `Binarizer`. A layer owns one instance, so a method
may hold parameters or buffers of its own. `train.py` calls the hooks below and knows no method by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from latentbit import ops
from latentbit.errors import LatentbitError

Multiply = Callable[[Tensor, Tensor], Tensor]
"""(input, weight) -> the layer's convolution or matrix product, with its stride and padding, without its bias."""


class BinaryLayer(Protocol):
    """What a method may read of the layer it serves."""

    weight: nn.Parameter
    """Latent weights W, output channels first."""


@dataclass(frozen=True)
class Deployed:
    """What survives of a layer at inference:

        y = scale * (sign(x - threshold) conv signs) + offset + the layer's bias

    `signs` is +-1 in the shape of W, `scale` and `offset` one number per output channel, `threshold` one per input
    channel or a single one for all. `pad` is what the bits are in a zero-padded border: nothing (0), or -1 for
    methods whose activations are 0 and 1, because a padded 0 is then the same as a bit that is off.
    """

    signs: Tensor
    scale: Tensor
    threshold: Tensor
    offset: Tensor | None = None
    pad: Literal[0, -1] = 0

    def extras(self) -> str:
        """What is kept beside signs and scales, in words."""
        kept = []
        if self.threshold.numel() > 1:
            kept.append("a threshold per input channel")
        if self.offset is not None:
            kept.append("an offset per output channel")
        return " and ".join(kept) or "nothing"


def deploy_zero_one(signs: Tensor, scale: Tensor, threshold: Tensor) -> Deployed:
    """A layer whose activations are 0 and 1: a = (s + 1) / 2, so a conv B = (s conv B + sum B) / 2."""
    half = scale / 2
    return Deployed(signs, half, threshold, offset=half * signs.flatten(1).sum(1), pad=-1)


class Unsuitable(LatentbitError):
    """Raised by a method that is not defined for such a layer."""


class NotDeployable(Exception):
    """Raised by a method whose inference needs more than signs, scales and thresholds; says what and why."""


class Binarizer(nn.Module):
    """How one layer is binarized. The defaults are those that most methods share; override what differs."""

    optimizer: ClassVar[Callable[..., Optimizer] | None] = None
    """Called with (weights, lr=...): the method's own rule for W, where the recipe's optimizer will not do."""
    decays: ClassVar[bool] = True
    """Whether weight decay applies to the method's own parameters."""

    def __init__(self, layer: BinaryLayer) -> None:
        super().__init__()

    def weight(self, w: Tensor) -> Tensor:
        """W -> alpha * B, with the method's gradient."""
        raise NotImplementedError

    def input(self, x: Tensor) -> Tensor:
        """Input of the layer -> +-1, with the method's gradient."""
        return ops.sign_clip(x)

    def product(self, x: Tensor, w: Tensor, multiply: Multiply) -> Tensor:
        """Output of the binary view before the bias; override it to change what the convolution gave."""
        return multiply(self.input(x), self.weight(w))

    def latent_weight(self, w: Tensor) -> Tensor:
        """What the latent view convolves with: W, or what the method takes the sign of."""
        return w

    def latent_input(self, x: Tensor) -> Tensor:
        """What the latent view sees where the binary view sees bits."""
        return ops.hard_tanh(x)

    def penalty(self, w: Tensor) -> Tensor | None:
        """A term this layer adds to the training loss."""
        return None

    def set_progress(self, progress: float) -> None:
        """Called at the start of every epoch with the share of training that is done, 0 <= progress < 1.

        Keep what it sets in buffers: a changed Python number would make torch.compile compile again. Both views of a
        layer share its Binarizer, so one call serves both.
        """

    def after_step(self, w: Tensor, lr: float) -> None:
        """Called after every optimizer step, without gradient, to clip or refresh W in place."""

    def deploy(self, w: Tensor) -> Deployed:
        """What a packed file keeps of this layer, or NotDeployable."""
        raise NotDeployable(f"method {type(self).__name__} does not say what it keeps at inference")


class LearnedScale(nn.Module):
    """One learned scale per output channel, kept as a factor of where it starts.

    Behind a BatchNorm the gradient of a scale is mostly noise, and Adam makes a step of size lr of any noise: as a
    plain parameter a small scale would walk through zero and turn its channel round.
    """

    start: Tensor

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.register_buffer("start", start.clone())
        self.factor = nn.Parameter(torch.ones_like(start))

    def forward(self) -> Tensor:
        return self.start * self.factor


def per_output(scale: Tensor, like: Tensor) -> Tensor:
    """Shape a vector over output channels so that it broadcasts over a weight (O, ...) or a row (O)."""
    return scale.view(-1, *([1] * (like.dim() - 1)))


def per_input(layer: BinaryLayer, value: float) -> Tensor:
    """A vector over the layer's input channels, shaped to broadcast over its input: (C, 1, 1) or (C)."""
    w = layer.weight
    n_channels = w.shape[1] * getattr(layer, "groups", 1)
    return w.new_full((n_channels, *([1] * (w.dim() - 2))), value)


def mean_abs(w: Tensor) -> Tensor:
    """alpha of XNOR-Net, one per output channel: the scale that minimises ||W - alpha B||^2."""
    return w.abs().flatten(1).mean(1)
