"""What folds, what must not, and that either way the logits are those of the module."""

import itertools

import lbit_oracle
import numpy as np
import pytest
import torch
from packing_models import Functional, binary, ops, same_as_torch, scramble_
from torch import nn

import latentbit
from latentbit import BinaryConv2d
from latentbit.engine import Engine


def _net(*middle: nn.Module, width: int = 8, tail: int = 8) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), *middle, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(tail, 5)
    )


def test_binary_conv_bn_sign_becomes_an_integer_threshold() -> None:
    layers: list[nn.Module] = []
    for before, width in itertools.pairwise([1, 3, 63, 64, 65, 130, 6]):
        layers += [nn.BatchNorm2d(before), nn.Hardtanh(), nn.Conv2d(before, width, 3, padding=1, bias=False)]
    network = same_as_torch(binary(_net(*layers, width=1, tail=6)), torch.randn(4, 3, 7, 7))
    assert ops(network) == ["conv", "sign", *["binary_conv"] * 6, "global_avg_pool", "linear"]
    for layer in network.layers[2:7]:
        assert layer.bits and layer.tensors["threshold"].dtype == np.int32
    assert not network.layers[7].bits


@pytest.mark.parametrize("order", ["pool-norm", "norm-pool", "norm-pool-norm"])
@pytest.mark.parametrize("groups", [1, 2])
def test_max_pool_between_conv_and_sign_pools_bits(order: str, groups: int) -> None:
    layers = [nn.MaxPool2d(2) if part == "pool" else nn.BatchNorm2d(8) for part in order.split("-")]
    model = binary(
        _net(nn.Conv2d(8, 8, 3, padding=1), *layers, nn.Hardtanh(), nn.Conv2d(8, 8, 3, groups=groups))
    )
    assert any((layer.weight < 0).any() for layer in layers if isinstance(layer, nn.BatchNorm2d))
    network = same_as_torch(model, torch.randn(8, 3, 10, 10))
    assert ops(network)[1:5] == ["sign", "binary_conv", "max_pool", "binary_conv"]
    assert network.layers[3].bits


def test_max_pool_of_real_values_before_a_sign_pools_bits() -> None:
    model = binary(_net(nn.MaxPool2d(3, 2, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)))
    network = same_as_torch(model, torch.randn(8, 3, 9, 9))
    assert ops(network)[:4] == ["conv", "sign", "max_pool", "binary_conv"]


def test_negated_channels_pass_through_a_flatten() -> None:
    model = binary(
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.Conv2d(8, 9, 3),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(9),
            nn.Flatten(),
            nn.Linear(9 * 4, 7),
            nn.Linear(7, 3),
        )
    )
    network = same_as_torch(model, torch.randn(8, 3, 8, 8))
    assert ops(network) == ["conv", "sign", "binary_conv", "max_pool", "flatten", "binary_linear", "linear"]
    assert network["4"].bits


def test_norm_after_flatten_keeps_the_flatten_in_front() -> None:
    model = binary(
        nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.Flatten(),
            nn.BatchNorm1d(4 * 9),
            nn.Linear(4 * 9, 7),
            nn.BatchNorm1d(7),
            nn.Linear(7, 3),
        )
    )
    network = same_as_torch(model, torch.randn(8, 3, 5, 5))
    assert ops(network) == ["conv", "flatten", "sign", "binary_linear", "linear"]
    assert len(network["3.sign"].tensors["threshold"]) == 36


def test_norm_folds_into_real_layers_and_into_scales() -> None:
    model = binary(_net(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.PReLU(8)))
    network = same_as_torch(model, torch.randn(4, 3, 6, 6))
    # relu before sign is monotone, so sign(relu(norm(x))) is one threshold; the last norm is in the scale.
    assert ops(network) == ["conv", "sign", "binary_conv", "prelu", "global_avg_pool", "linear"]
    with_norm = binary(_net(nn.BatchNorm2d(8), nn.PReLU(8), nn.Conv2d(8, 8, 1), nn.PReLU()))
    assert "affine" not in ops(same_as_torch(with_norm, torch.randn(4, 3, 6, 6)))


def test_norm_folds_into_a_transposed_convolution() -> None:
    model = nn.Sequential(
        nn.ConvTranspose2d(4, 6, 2, 2, groups=2), nn.BatchNorm2d(6), nn.ReLU6(), nn.Conv2d(6, 3, 1)
    )
    images = torch.randn(2, 4, 5, 5)
    network = same_as_torch(scramble_(model), images)
    assert ops(network) == ["conv_transpose", "clamp", "conv"]
    small = latentbit.pack(model, images, float_bits=8)
    assert small["0"].tensors["weight"].dtype == np.int8
    error = np.abs(Engine(small)(images.numpy()) - Engine(network)(images.numpy())).max()
    assert error < 0.05 * np.abs(Engine(network)(images.numpy())).max()


def test_a_clamp_before_a_sign_becomes_its_threshold() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Hardtanh(-0.5, 2), nn.Conv2d(8, 4, 3))
    network = same_as_torch(binary(model, keep=("0",)), torch.randn(2, 3, 8, 8))
    assert ops(network) == ["conv", "sign", "binary_conv"]


def test_a_value_with_two_readers_is_not_folded_away() -> None:
    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.b(self.a(x)))
        z = self.c(y) + y
        return self.fc(z.mean((2, 3)))

    parts = {"a": nn.Conv2d(3, 8, 3), "b": nn.Conv2d(8, 8, 3), "c": nn.Conv2d(8, 8, 1)}
    model = binary(Functional(forward, **parts, norm=nn.BatchNorm2d(8), fc=nn.Linear(8, 3)))
    network = same_as_torch(model, torch.randn(4, 3, 9, 9))
    assert ops(network) == [
        "conv",
        "sign",
        "binary_conv",
        "sign",
        "binary_conv",
        "add",
        "global_avg_pool",
        "linear",
    ]
    assert not network["b"].bits


def test_pre_activation_norm_becomes_the_threshold_of_the_sign() -> None:
    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        x = x + self.b(self.norm(x))
        return self.fc(x.mean((2, 3)))

    parts = {"a": nn.Conv2d(3, 8, 3), "b": nn.Conv2d(8, 8, 3, padding=1)}
    model = binary(Functional(forward, **parts, norm=nn.BatchNorm2d(8), fc=nn.Linear(8, 3)))
    network = same_as_torch(model, torch.randn(4, 3, 9, 9))
    assert ops(network) == ["conv", "sign", "binary_conv", "add", "global_avg_pool", "linear"]
    sign = network["b.sign"]
    gamma = model.norm.weight.detach().numpy()  # type: ignore[union-attr, operator]
    assert np.array_equal(sign.tensors["flip"][1:], gamma[1:] < 0)


def test_two_layers_that_read_one_value_share_its_sign() -> None:
    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.a(x))
        return self.fc((self.b(x) + self.c(x)).mean((2, 3)))

    parts = {"a": nn.Conv2d(3, 8, 3), "b": nn.Conv2d(8, 8, 1), "c": nn.Conv2d(8, 8, 1)}
    model = binary(Functional(forward, **parts, norm=nn.BatchNorm2d(8), fc=nn.Linear(8, 3)))
    assert ops(same_as_torch(model, torch.randn(4, 3, 9, 9))).count("sign") == 1


def test_what_is_not_monotone_stays() -> None:
    model = binary(
        _net(nn.PReLU(8), nn.Conv2d(8, 8, 1), nn.AvgPool2d(2), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1))
    )
    assert (model[1].weight < 0).any()  # type: ignore[index, union-attr, operator]
    network = same_as_torch(model, torch.randn(4, 3, 8, 8))
    assert ops(network)[:6] == ["conv", "prelu", "sign", "binary_conv", "avg_pool", "sign"]


def test_a_norm_that_nothing_takes_becomes_an_affine() -> None:
    model = binary(_net(nn.Conv2d(8, 8, 1), nn.AvgPool2d(2), nn.BatchNorm2d(8), nn.PReLU(8)))
    assert "affine" in ops(same_as_torch(model, torch.randn(4, 3, 8, 8)))


def test_integer_dots_are_exact() -> None:
    """The oracle's dots are the convolution of signs with signs: no rounding anywhere."""
    model = binary(_net(nn.BatchNorm2d(8), nn.Conv2d(8, 12, 3, 2, 1, bias=False), tail=12))
    images = torch.randn(4, 3, 9, 9)
    network = same_as_torch(model, images)
    conv = model[2]  # type: ignore[index]
    assert isinstance(conv, BinaryConv2d)
    seen = {}
    conv.register_forward_hook(lambda module, args, y: seen.update(x=args[0], y=y))
    with torch.no_grad():
        model(images)
        signs = torch.where(seen["x"] < 0, -1.0, 1.0)
        expected = torch.conv2d(signs, torch.where(conv.weight < 0, -1.0, 1.0), stride=2, padding=1)
    bits = lbit_oracle.values(network, images.numpy(), np.float32)["2.sign"]
    assert np.array_equal(bits, signs.numpy())
    assert np.array_equal(lbit_oracle.dot(network["2"], bits), expected.numpy())


@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "groups"),
    [
        (1, 1, 0, 1),
        (2, 1, 1, 3),
        ((2, 1), 2, (2, 1), 1),
        (1, 1, "same", 1),
        (1, 2, "same", 3),
        (3, 2, (1, 0), 3),
    ],
)
def test_geometry(stride: int | tuple, dilation: int, padding: int | tuple | str, groups: int) -> None:
    conv = nn.Conv2d(9, 6, (3, 2), stride, padding, dilation, groups)  # type: ignore[arg-type]
    same_as_torch(binary(_net(conv, nn.PReLU(), width=9, tail=6)), torch.randn(2, 3, 9, 8))


def test_odd_maps_under_ceil_mode() -> None:
    for pool in (
        nn.MaxPool2d(2, ceil_mode=True),
        nn.AvgPool2d(2, ceil_mode=True),
        nn.MaxPool2d(3, 3, ceil_mode=True),
    ):
        model = binary(_net(pool, nn.PReLU(8), nn.Conv2d(8, 8, 1), pool, nn.PReLU(8)))
        same_as_torch(model, torch.randn(2, 3, 7, 7))


def test_dead_code_is_dropped() -> None:
    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        self.unused(x)
        return self.fc(self.b(self.a(x)).mean((2, 3)))

    parts = {"a": nn.Conv2d(3, 8, 3), "unused": nn.Conv2d(3, 8, 3), "b": nn.Conv2d(8, 8, 1)}
    model = binary(Functional(forward, **parts, fc=nn.Linear(8, 3)))
    assert "unused" not in {layer.name for layer in latentbit.pack(model, torch.randn(1, 3, 9, 9)).layers}
