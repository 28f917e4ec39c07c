"""sign and its straight-through estimators: tensors in, tensors out.

sign(0) = +1, also for -0.0, so that one bit holds every value. The derivative of sign is zero almost
everywhere; an estimator keeps the forward of sign and takes the backward of a function that resembles it.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def sign(x: Tensor) -> Tensor:
    """-1 where x < 0, else +1 (so 0, -0.0 and NaN give +1). No gradient."""
    # Three times faster on a CPU than torch.where with two scalars.
    return (x < 0).to(x.dtype).mul_(-2).add_(1)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, hard: Tensor, soft: Tensor) -> Tensor:
        return hard.view_as(hard)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[None, Tensor]:
        return None, grads[0]


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, bit for bit, with the gradient of `soft`.

    Not `soft + (hard - soft).detach()`: that rounds, and a binary value must be exactly +1 or -1.
    """
    return _StraightThrough.apply(hard, soft)


def sign_identity(x: Tensor) -> Tensor:
    """sign(x); gradient 1 everywhere."""
    return straight_through(sign(x.detach()), x)


def sign_clip(x: Tensor) -> Tensor:
    """sign(x); gradient 1 where |x| <= 1, else 0: the derivative of hard tanh (paper, Eq. 2).

    The paper prints |x| < 1. The bound is kept inclusive so that a weight clipped to exactly 1 can return.
    """
    return straight_through(sign(x.detach()), x.clamp(-1, 1))


def approx_sign(x: Tensor) -> Tensor:
    """sign(x); gradient max(0, 2 - 2|x|), of the piecewise quadratic that Bi-Real Net calls ApproxSign."""
    c = x.clamp(-1, 1)
    return straight_through(sign(x.detach()), c * (2 - c.abs()))


def sign_quadratic(x: Tensor, t: Tensor, k: Tensor) -> Tensor:
    """sign(x); gradient k max(0, sqrt(2) t - t^2 |x|): ApproxSign at t = sqrt(2), k = 1, sharper as t grows."""
    c = (t * x).clamp(-(2**0.5), 2**0.5)
    return straight_through(sign(x.detach()), k * c * (2**0.5 - 0.5 * c.abs()))


def sign_tanh(x: Tensor, t: Tensor, k: Tensor) -> Tensor:
    """sign(x); gradient k t (1 - tanh^2(t x)): nearly the identity for small t, a peak at 0 for large t."""
    return straight_through(sign(x.detach()), k * torch.tanh(t * x))


def sign_swish(x: Tensor, beta: float) -> Tensor:
    """sign(x); gradient beta (2 - beta x tanh(beta x / 2)) / (1 + cosh(beta x)), slightly negative in its tails."""
    s = torch.sigmoid(beta * x)
    return straight_through(sign(x.detach()), 2 * s * (1 + beta * x * (1 - s)))


def sign_power(x: Tensor, o: Tensor, bound: float, core: float) -> Tensor:
    """sign(x); gradient |x|^(1/o - 1) / o where core < |x| <= bound, core^(1/o - 1) up to core, 0 beyond bound.

    That of sign(x) |x|^(1/o), a straight line through its steep middle: ReSTE. o = 1 is the clipped identity.
    """
    size = x.detach().abs()
    power = size.clamp(min=core) ** (1 / o - 1)
    slope = torch.where(size > core, power / o, power) * (size <= bound)
    return straight_through(sign(x.detach()), x * slope)


def sign_sigmoid(x: Tensor, sharpness: float) -> Tensor:
    """sign(x); gradient 2 k s (1 - s) with s = sigmoid(k x) and k the sharpness."""
    return straight_through(sign(x.detach()), 2 * torch.sigmoid(sharpness * x))


def over_deviation(x: Tensor) -> Tensor:
    """x divided by sqrt(variance + 1e-5) of each sample. Changes no sign, only where estimators of it have gradient."""
    rows = x.flatten(1)
    # One value has no spread: the unbiased variance of it would be NaN.
    variance = rows.var(1, correction=min(1, rows.shape[1] - 1))
    return x / (variance + 1e-5).sqrt().view(-1, *[1] * (x.dim() - 1))


def step(x: Tensor) -> Tensor:
    """1 where sign(x) = +1, else 0. No gradient."""
    return (x >= 0).to(x.dtype)


def standardize(x: Tensor) -> Tensor:
    """x without its mean and with standard deviation 1 (unbiased) over all dimensions but the first."""
    rows = x.flatten(1)
    std, mean = torch.std_mean(rows, dim=1, keepdim=True)
    # A constant row has no direction: it becomes 0, not NaN.
    return ((rows - mean) / std.clamp(min=1e-12)).view_as(x)


def hard_tanh(x: Tensor) -> Tensor:
    """clamp(x, -1, 1): what the latent view computes where the binary view takes the sign."""
    return F.hardtanh(x)
