"""BinaryConv1d, BinaryConv2d and BinaryLinear: stock layers whose weights and inputs pass through a Binarizer.

    binary view   y = binarizer.product(x, W, conv) + bias, by default binarizer.weight(W) conv binarizer.input(x)
    latent view   y = W conv hardtanh(x) + bias

Zero padding happens after the sign, so a border tap contributes nothing. State dict keys are those of the
stock layers, plus `binarizer.*` for methods that hold parameters.

Containers of torch that read the weights of a layer themselves would compute with W: nn.TransformerEncoderLayer does so
in eval, unless some layer in it has a hook. So every binary linear layer has one.
"""

from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit.methods.parts import loops
from latentbit.methods.parts.binarizer import Binarizer

View = Literal["binary", "latent", "stale"]
"""binary: B and sign(x). latent: W and hardtanh(x). stale: W and sign(x), W put in the binary net as it is."""

FLOAT_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")


def call_me(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
    """Does nothing: that there is a hook keeps torch from reading the weights past the layer."""


class _Binary:
    """What all layers do the same way; mixed in before the stock class."""

    view: View = "binary"
    binarizer: Binarizer
    weight: nn.Parameter
    bias: nn.Parameter | None

    def _multiply(self, a: Tensor, w: Tensor) -> Tensor:
        """The stock operation without its bias."""
        raise NotImplementedError

    def _product(self, x: Tensor) -> Tensor:
        """What this view computes, before the bias."""
        if self.view == "binary":
            return self.binarizer.product(x, self.weight, self._multiply)
        w = self.binarizer.latent_weight(self.weight)
        a = self.binarizer.latent_input(x) if self.view == "latent" else self.binarizer.input(x)
        return self._multiply(a, w)

    def _adopt(self, layer: nn.Module, method: Binarizer) -> Self:
        """Take over the Parameters themselves, so that optimizer state and tied weights stay theirs."""
        self.weight, self.bias = layer.weight, layer.bias  # type: ignore[assignment]
        for hooks in FLOAT_HOOKS:
            setattr(self, hooks, getattr(layer, hooks))
        self.training = layer.training
        self.binarizer = method.for_layer(self)
        self.binarizer.to(self.weight.device, self.weight.dtype)
        loops.follow(self)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        loops.follow(self)  # of a copy the optimizer steps too


class _BinaryConv(_Binary):
    """What convolutions of any number of axes share; mixed in before the stock class."""

    @classmethod
    def from_float(cls, conv: Any, method: Binarizer) -> Self:
        """A binary layer over the Parameters of `conv`, which should not be used any more."""
        with torch.device("meta"):
            layer = cls(  # type: ignore[call-arg]
                conv.in_channels,
                conv.out_channels,
                conv.kernel_size,
                conv.stride,
                conv.padding,
                conv.dilation,
                conv.groups,
                conv.bias is not None,
                conv.padding_mode,
            )
        return layer._adopt(conv, method)

    def _multiply(self, a: Tensor, w: Tensor) -> Tensor:
        return self._conv_forward(a, w, None)  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        y = self._product(x)
        return y if self.bias is None else y + self.bias.view(-1, *[1] * (self.weight.dim() - 2))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, view={self.view}"  # type: ignore[misc]


class BinaryConv1d(_BinaryConv, nn.Conv1d):  # type: ignore[misc]
    """nn.Conv1d with binary weights and inputs: strides, dilation, groups, padding and bias as there."""


class BinaryConv2d(_BinaryConv, nn.Conv2d):  # type: ignore[misc]
    """nn.Conv2d with binary weights and inputs: strides, dilation, groups, padding and bias as there."""


class BinaryLinear(_Binary, nn.Linear):  # type: ignore[misc]
    """nn.Linear with binary weights and inputs."""

    @classmethod
    def from_float(cls, linear: nn.Linear, method: Binarizer) -> Self:
        """A binary layer over the Parameters of `linear`, which should not be used any more."""
        with torch.device("meta"):
            layer = cls(linear.in_features, linear.out_features, linear.bias is not None)
        layer._adopt(linear, method)
        layer.register_forward_pre_hook(call_me)
        return layer

    def _multiply(self, a: Tensor, w: Tensor) -> Tensor:
        return F.linear(a, w)

    def forward(self, x: Tensor) -> Tensor:
        y = self._product(x)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, view={self.view}"


Binary = BinaryConv1d | BinaryConv2d | BinaryLinear
BINARY_LAYERS = (BinaryConv1d, BinaryConv2d, BinaryLinear)
BINARY_FORMS: dict[type[nn.Module], type[Binary]] = {
    nn.Conv1d: BinaryConv1d,
    nn.Conv2d: BinaryConv2d,
    nn.Linear: BinaryLinear,
}
"""Stock layers, and the binary ones that stand for them."""
