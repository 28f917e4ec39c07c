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


def test_sharpening_gradients_are_their_formulas() -> None:
    x = torch.linspace(-2, 2, 81)
    for t, k in [(0.5, 2.0), (1.0, 1.0), (4.0, 1.0)]:
        tensors = torch.tensor(t), torch.tensor(k)
        expected = k * (2**0.5 * t - t**2 * x.abs()).clamp(min=0)
        torch.testing.assert_close(gradient(lambda v, a=tensors: ops.sign_quadratic(v, *a), x), expected)
        expected = k * t / torch.cosh(t * x) ** 2
        torch.testing.assert_close(gradient(lambda v, a=tensors: ops.sign_tanh(v, *a), x), expected)
    z = 3 * x
    expected = 3 * (2 - z * torch.tanh(z / 2)) / (1 + torch.cosh(z))
    torch.testing.assert_close(gradient(lambda v: ops.sign_swish(v, 3.0), x), expected)


def test_step_is_one_where_sign_is_positive() -> None:
    assert torch.equal(ops.step(EDGES), (SIGNS + 1) / 2)


def test_standardized_rows_have_mean_0_and_deviation_1_and_constant_ones_vanish() -> None:
    x = torch.randn(3, 2, 4, 4) * 5 + 2
    x[1] = 7.0
    x.requires_grad_()
    v = ops.standardize(x)
    std, mean = torch.std_mean(v.flatten(1), 1)
    torch.testing.assert_close(mean, torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(std, torch.tensor([1.0, 0.0, 1.0]))
    v.square().sum().backward()
    assert torch.isfinite(x.grad).all()


def test_straight_through_keeps_every_bit_of_the_hard_value() -> None:
    hard = torch.tensor([1.0, -1.0, 1e-7])
    soft = torch.tensor([1e8, 3.3, -7.7], requires_grad=True)
    out = ops.straight_through(hard, soft)
    assert torch.equal(out, hard)
    out.sum().backward()
    assert torch.equal(soft.grad, torch.ones(3))


def test_hard_tanh_clamps() -> None:
    assert torch.equal(ops.hard_tanh(EDGES), EDGES.clamp(-1, 1))
