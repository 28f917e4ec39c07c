"""What a method is: how one layer turns W into B and its input into bits.

A method is one subclass of `Binarizer`: ours are files in `methods/`, yours are wherever you like (docs/extending.md).
`IRNet(t_min=0.1)` is a choice of options without a layer. Each layer that it is given to gets an instance of its own
with the same options, and `setup` then makes the parameters and buffers of that layer. The training loop calls the
hooks below and knows no method by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol, Self, dataclass_transform

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from latentbit import ops
from latentbit.errors import LatentbitError
from latentbit.fields import hints, problem_with, settle

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

    Filters with a `mean` of their own, one per output channel, and activations that are lifted by one number:

        y = (sign(x - threshold) + lift) conv (scale * signs + mean) + offset + the layer's bias

    where the padded border is nothing. Inference then also sums the bits under each filter.

    Input channels with `flip` have the opposite bit: +1 below their threshold. What depends on the sample: with
    `centred`, x first loses its mean over all of the sample; with `cubic`, one number per input channel, thresholds
    move by cubic * mean of x^3 over the map; with `windowed`, outputs are multiplied by the mean of |x| under the
    filter, before the bias.

    Methods with several bases have further layers in `plus`: they read the same x, and their results are added. With
    `real_input`, x itself stands in the place of its sign.
    """

    signs: Tensor
    scale: Tensor
    threshold: Tensor
    offset: Tensor | None = None
    pad: Literal[0, -1] = 0
    mean: Tensor | None = None
    lift: Tensor | None = None
    flip: Tensor | None = None
    centred: bool = False
    cubic: Tensor | None = None
    windowed: bool = False
    plus: tuple["Deployed", ...] = ()
    real_input: bool = False

    def extras(self) -> str:
        """What is kept beside signs and scales, in words."""
        kept = []
        if self.threshold.numel() > 1:
            kept.append("a threshold per input channel")
        if self.offset is not None:
            kept.append("an offset per output channel")
        if self.mean is not None:
            kept.append("a mean per filter, times the sum of the bits under it")
        if self.centred:
            kept.append("the mean of every sample")
        if self.cubic is not None:
            kept.append("a threshold that follows the mean cube of every map")
        if self.windowed:
            kept.append("the mean of the real input under the filter")
        if self.real_input:
            kept.append("real activations")
        if self.plus:
            kept.append(f"{len(self.plus)} more binary layers, whose results are added")
        return " and ".join(kept) or "nothing"


def deploy_zero_one(signs: Tensor, scale: Tensor, threshold: Tensor, flip: Tensor | None = None) -> Deployed:
    """A layer whose activations are 0 and 1: a = (s + 1) / 2, so a conv B = (s conv B + sum B) / 2."""
    half = scale / 2
    return Deployed(signs, half, threshold, offset=half * signs.flatten(1).sum(1), pad=-1, flip=flip)


def deploy_sum(parts: Sequence[Deployed]) -> Deployed:
    """Layers that read the same input, and whose results are added."""
    first, *others = parts
    return replace(first, plus=tuple(others))


class Unsuitable(LatentbitError):
    """Raised by a method that is not defined for such a layer."""


class BadOption(LatentbitError):
    """An option of a method has a value that it does not take."""


class NotDeployable(Exception):
    """Raised by a method whose inference needs more than signs, scales and thresholds; says what and why."""


@dataclass_transform(kw_only_default=True, eq_default=False)
class Binarizer(nn.Module):
    """How one layer is binarized. The defaults are those that most methods share; override what differs.

    Annotated fields of a subclass are its options, as those of a dataclass, with a docstring under each:

        t_min: Annotated[float, Range(1e-6)] = 1e-3
    """

    decays: ClassVar[bool] = True
    """Whether weight decay applies to the method's own parameters."""

    real_input: ClassVar[bool] = False
    """Whether activations stay real, and weights alone are binary. `Deployed` has to say so too."""

    # What loops.py has told the method of a layer so far. Not annotated: they are no options.
    _steps = 0
    _steps_noted = 0
    _told_progress = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            raise TypeError(
                f"{cls.__name__} defines __init__: write its options as annotated fields, "
                "and make the parameters of a layer in setup(self, layer)"
            )
        # Modules are compared and hashed by identity, and print themselves.
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        for field in fields(cls):  # type: ignore[arg-type]
            if hasattr(Binarizer, field.name):
                raise TypeError(
                    f"{cls.__name__}.{field.name}: every method has a {field.name}, call the option otherwise"
                )

    def __post_init__(self) -> None:
        super().__init__()
        for key, hint in hints(type(self)).items():
            value = getattr(self, key)
            if what := problem_with(value, hint):
                raise BadOption(f"option {key} of method {self.name()}: {what}")
            setattr(self, key, settle(value, hint))

    @classmethod
    def name(cls) -> str:
        """What a recipe calls it: `irnet`, or outside of this package `my_module:MyClass` or `my_file.py:MyClass`."""
        package, _, file = cls.__module__.rpartition(".")
        # Of two files with one name the second module is called my_file.py#2: latentbit.imports
        return (
            file
            if package == "latentbit.methods"
            else f"{cls.__module__.partition('#')[0]}:{cls.__qualname__}"
        )

    def options(self) -> dict[str, Any]:
        """Every option with its value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Its name, and the options that are not as they come."""
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name()} ({', '.join(changed)})" if changed else self.name()

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.options().items())

    def for_layer(self, layer: BinaryLayer) -> Self:
        """An instance with the same options that serves this layer."""
        mine = type(self)(**self.options())
        mine.setup(layer)
        return mine

    def setup(self, layer: BinaryLayer) -> None:
        """Make the parameters and buffers of a layer, once, before anything else is called."""

    def optimizer(self, weights: list[nn.Parameter], lr: float) -> Optimizer | None:
        """A rule of the method's own for W of all layers that have it, where the recipe's optimizer will not do."""
        return None

    def weight(self, w: Tensor) -> Tensor:
        """W -> alpha * B, with the method's gradient."""
        raise NotImplementedError

    def input(self, x: Tensor) -> Tensor:
        """Input of the layer -> +-1, with the method's gradient."""
        return x if self.real_input else ops.sign_clip(x)

    def product(self, x: Tensor, w: Tensor, multiply: Multiply) -> Tensor:
        """Output of the binary view before the bias; override it to change what the convolution gave."""
        return multiply(self.input(x), self.weight(w))

    def latent_weight(self, w: Tensor) -> Tensor:
        """What the latent view convolves with: W, or what the method takes the sign of."""
        return w

    def latent_input(self, x: Tensor) -> Tensor:
        """What the latent view sees where the binary view sees bits."""
        return x if self.real_input else ops.hard_tanh(x)

    def penalty(self, w: Tensor) -> Tensor | None:
        """A term this layer adds to the training loss."""
        return None

    def set_progress(self, progress: float) -> None:
        """Called at the start of every epoch with the share of training that is done, 0 <= progress < 1.

        Keep what it sets in buffers: a changed Python number would make torch.compile compile again. Both views of a
        layer share its Binarizer, so one call serves both.
        """

    def follows_progress(self) -> bool:
        """Whether it changes over the training: every class with a set_progress does, unless an option turns it off."""
        return type(self).set_progress is not Binarizer.set_progress

    def before_step(self, w: Tensor) -> None:
        """Called before every optimizer step, without gradient, to change `w.grad`, which is complete by then.

        It may be None. Before the weight decay of the optimizer, after any clipping of gradients.
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


def need_spread(method: Binarizer, layer: BinaryLayer) -> None:
    """For methods that standardize filters: those of one weight have no spread, and would all become the same."""
    if layer.weight[0].numel() == 1:
        raise Unsuitable(
            f"method {method.name()} divides filters by their standard deviation, and those of this layer hold one "
            "weight each: keep it real with binarize_(keep=...) or choose another method"
        )


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
