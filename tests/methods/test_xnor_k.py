import numpy as np
import pytest
import torch
from methods.method_gradients import layer_of, np_alpha, np_conv, np_sign, sample
from torch import nn

from latentbit import methods
from latentbit.layers import BinaryConv2d, BinaryLinear


@pytest.mark.parametrize("padding", [0, 1])
def test_every_pixel_is_scaled_by_the_mean_input_under_the_filter(padding) -> None:
    w, _ = sample((4, 3, 3, 3))
    x, _ = sample((2, 3, 6, 6), seed=1)
    y = np_conv(np_sign(x), np_alpha(w) * np_sign(w), padding)
    k = np_conv(np.abs(x).mean(1, keepdims=True), np.full((1, 1, 3, 3), 1 / 9), padding)
    layer = layer_of("xnor_k", w, padding=padding)
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), y * k, atol=1e-12)


def test_the_gradient_flows_through_k() -> None:
    w, _ = sample((4, 3, 3, 3))
    x, _ = sample((1, 3, 3, 3), seed=1)
    g = np.random.default_rng(2).normal(size=(1, 4, 1, 1))
    t = torch.from_numpy(x.copy()).requires_grad_()
    layer_of("xnor_k", w)(t).backward(torch.from_numpy(g))
    filters = np_alpha(w) * np_sign(w)
    y, k = np_conv(np_sign(x), filters), np.abs(x).mean()
    through_sign = (g.reshape(4, 1, 1, 1) * filters).sum(0) * k * (np.abs(x) <= 1)
    through_k = (g * y).sum() * np.sign(x) / x.size
    np.testing.assert_allclose(t.grad, through_sign + through_k)


def test_groups_have_a_map_each_and_rows_a_mean() -> None:
    method = methods.create("xnor_k")
    grouped = BinaryConv2d.from_float(nn.Conv2d(4, 6, 3, groups=2, bias=False), method)
    x = torch.randn(2, 4, 5, 5)
    halves = []
    for i in range(2):
        half = BinaryConv2d.from_float(nn.Conv2d(2, 3, 3, bias=False), method)
        half.weight.data = grouped.weight.data[3 * i : 3 * i + 3]
        halves.append(half(x[:, 2 * i : 2 * i + 2]))
    torch.testing.assert_close(grouped(x), torch.cat(halves, 1))
    linear = BinaryLinear.from_float(nn.Linear(5, 3, bias=False), method)
    x = torch.randn(2, 5)
    signs = nn.functional.linear(x.sign(), linear.weight.sign() * linear.weight.abs().mean(1, keepdim=True))
    torch.testing.assert_close(linear(x), signs * x.abs().mean(1, keepdim=True))
