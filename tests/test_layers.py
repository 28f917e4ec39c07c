import pytest
import torch
from torch import nn
from torch.nn import functional as F

from latentbit.layers import BinaryConv2d, BinaryLinear
from latentbit.methods.sign import Sign
from latentbit.methods.xnor_pp import XNORPlusPlus

CONVS = [
    dict(kernel_size=3),
    dict(kernel_size=3, padding=1, bias=False),
    dict(kernel_size=(3, 5), stride=(2, 1), padding=(1, 2)),
    dict(kernel_size=3, dilation=2, padding=2),
    dict(kernel_size=3, groups=2, padding=1),
    dict(kernel_size=3, padding="same"),
    dict(kernel_size=3, padding=1, padding_mode="reflect"),
    dict(kernel_size=1, stride=2),
]


def plus_minus_one(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 0, -torch.ones_like(x), torch.ones_like(x))


@pytest.mark.parametrize("options", CONVS)
def test_conv_is_a_conv_of_signs_scaled_by_alpha(options) -> None:
    conv = nn.Conv2d(4, 6, **options)
    x = torch.randn(2, 4, 9, 9)
    twin = nn.Conv2d(4, 6, **options)
    alpha = conv.weight.detach().abs().mean((1, 2, 3), keepdim=True)
    twin.weight.data = alpha * plus_minus_one(conv.weight.detach())
    if conv.bias is not None:
        twin.bias.data = conv.bias.data.clone()
    layer = BinaryConv2d.from_float(conv, Sign())
    torch.testing.assert_close(layer(x), twin(plus_minus_one(x)))


def test_zero_padding_adds_nothing() -> None:
    conv = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    conv.weight.data.fill_(1.0)
    layer = BinaryConv2d.from_float(conv, Sign())
    assert layer(torch.ones(1, 1, 3, 3)).tolist() == [[[[4, 6, 4], [6, 9, 6], [4, 6, 4]]]]


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_a_product_of_signs_scaled_by_alpha(bias) -> None:
    linear = nn.Linear(7, 5, bias=bias)
    x = torch.randn(3, 2, 7)
    w = plus_minus_one(linear.weight.detach()) * linear.weight.detach().abs().mean(1, keepdim=True)
    expected = F.linear(plus_minus_one(x), w, linear.bias)
    torch.testing.assert_close(BinaryLinear.from_float(linear, Sign())(x), expected)


def test_latent_and_stale_views_compute_with_w() -> None:
    conv = nn.Conv2d(3, 4, 3)
    x = 2 * torch.randn(2, 3, 6, 6)
    layer = BinaryConv2d.from_float(conv, Sign())
    layer.view = "latent"
    torch.testing.assert_close(layer(x), F.conv2d(x.clamp(-1, 1), layer.weight, layer.bias))
    layer.view = "stale"
    torch.testing.assert_close(layer(x), F.conv2d(plus_minus_one(x), layer.weight, layer.bias))


def test_from_float_adopts_parameters_hooks_and_mode() -> None:
    conv = nn.Conv2d(3, 4, 3)
    seen = []
    conv.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    weight, bias = conv.weight, conv.bias
    optimizer = torch.optim.Adam(conv.parameters())
    conv(torch.randn(1, 3, 4, 4)).sum().backward()
    optimizer.step()
    layer = BinaryConv2d.from_float(conv.eval(), Sign())
    assert layer.weight is weight and layer.bias is bias and not layer.training
    layer(torch.randn(1, 3, 4, 4)).sum().backward()
    assert len(seen) == 2
    before = layer.weight.detach().clone()
    optimizer.step()
    assert not torch.equal(before, layer.weight)


def test_state_dict_has_the_keys_of_the_float_layer_plus_those_of_the_method() -> None:
    conv = nn.Conv2d(3, 4, 3)
    keys = set(conv.state_dict())
    assert set(BinaryConv2d.from_float(nn.Conv2d(3, 4, 3), Sign()).state_dict()) == keys
    extra = set(BinaryConv2d.from_float(conv, XNORPlusPlus()).state_dict()) - keys
    assert extra == {"binarizer.gamma"}


def test_repr_says_which_view() -> None:
    assert "view=binary" in repr(BinaryLinear.from_float(nn.Linear(2, 2), Sign()))
