import contextlib

import torch
from torch import nn

from latentbit import binarize_, ops
from latentbit.training.compiling import autocast_for, compile_pays

CPU = torch.device("cpu")


def test_compile_is_chosen_where_it_pays() -> None:
    assert compile_pays("on", CPU, 1) and not compile_pays("off", CPU, 10**6)
    assert not compile_pays("auto", CPU, 100) and not compile_pays("auto", torch.device("mps"), 10**6)


def test_bf16_is_used_on_request_and_never_by_itself_on_a_cpu() -> None:
    assert isinstance(autocast_for("auto", CPU), contextlib.nullcontext)
    with autocast_for("bf16", CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_bits_and_their_gradients_survive_bf16() -> None:
    """Binary layers stay products of bits: integers times a scale, of which only the scale and the result round."""
    layer = nn.Sequential(nn.Conv2d(8, 4, 3, bias=False))
    binarize_(layer, keep=[])
    x, w = torch.randn(2, 8, 5, 5, requires_grad=True), layer[0].weight
    with autocast_for("bf16", CPU):
        y = layer(x)
    bits = torch.nn.functional.conv2d(ops.sign(x.detach()), ops.sign(w.detach()))
    scale = w.detach().abs().flatten(1).mean(1).bfloat16().float().view(1, -1, 1, 1)
    assert y.dtype == torch.bfloat16 and torch.equal(y, (scale * bits).bfloat16())
    y.sum().backward()
    assert x.grad.dtype == w.grad.dtype == torch.float32
    outside = x.detach().abs() > 1
    assert bool((x.grad[outside] == 0).all()) and bool((x.grad[~outside] != 0).any())
    assert bool((w.grad != 0).any())
