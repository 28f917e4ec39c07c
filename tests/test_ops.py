import pytest
import torch
from torch import Tensor

from latentbit import ops

EDGES = torch.tensor([-2.0, -1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.5, 1.0, 2.0])
SIGNS = torch.tensor([-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])


def gradient(estimator, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    upstream = torch.arange(1.0, len(x) + 1)
    estimator(x).backward(upstream)
    assert x.grad is not None
    return x.grad / upstream


@pytest.mark.parametrize("function", [ops.sign, ops.sign_identity, ops.sign_clip, ops.approx_sign])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_forward_is_sign_and_zero_is_positive(function, dtype) -> None:
    out = function(EDGES.to(dtype))
    assert out.dtype == dtype
    assert torch.equal(out, SIGNS.to(dtype))


def test_nan_is_positive_like_a_packed_bit() -> None:
    assert ops.sign(torch.tensor([float("nan"), -float("nan")])).tolist() == [1.0, 1.0]


def test_sign_has_no_gradient() -> None:
    assert not ops.sign(torch.ones(2, requires_grad=True)).requires_grad


def test_gradients_are_their_formulas() -> None:
    x = torch.linspace(-2, 2, 81)
    assert torch.equal(gradient(ops.sign_identity, x), torch.ones_like(x))
    assert torch.equal(gradient(ops.sign_clip, x), (x.abs() <= 1).float())
    torch.testing.assert_close(gradient(ops.approx_sign, x), (2 - 2 * x.abs()).clamp(min=0))


def test_straight_through_keeps_every_bit_of_the_hard_value() -> None:
    hard = torch.tensor([1.0, -1.0, 1e-7])
    soft = torch.tensor([1e8, 3.3, -7.7], requires_grad=True)
    out = ops.straight_through(hard, soft)
    assert torch.equal(out, hard)
    out.sum().backward()
    assert torch.equal(soft.grad, torch.ones(3))


def test_hard_tanh_clamps() -> None:
    assert torch.equal(ops.hard_tanh(EDGES), EDGES.clamp(-1, 1))
