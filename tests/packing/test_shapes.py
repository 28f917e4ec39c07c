"""Convolutions, pools, resizing and reordering give what PyTorch gives; the rest is refused by name."""

from collections.abc import Callable

import pytest
import torch
from packing_models import around, binary, ops, same_as_torch
from torch import Tensor, nn
from torch.nn import functional as F

import latentbit
from latentbit.packing import CannotPack
from latentbit.packing.shapes import as_value

WEIGHT = torch.randn(4, 3, 3, 2, generator=torch.Generator().manual_seed(0))
CASES: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), "max_pool"),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), "avg_pool"),
    "avg_pool2d without padding": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), "avg_pool"),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 1)), "avg_pool"),
    "adaptive_avg_pool2d, uneven": (lambda x: F.adaptive_avg_pool2d(x, (4, 5)), "adaptive_avg_pool"),
    "mean": (lambda x: x.mean((2, 3)), "global_avg_pool"),
    "mean, kept": (lambda x: x.mean((-1, -2), keepdim=True), "global_avg_pool"),
    "view": (lambda x: x.view(x.size(0), -1), "flatten"),
    "reshape": (lambda x: x.reshape(x.shape[0], -1), "flatten"),
    "torch.flatten": (lambda x: torch.flatten(x, 1), "flatten"),
    "squeeze": (lambda x: F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(-1), "global_avg_pool"),
    "a gate by expand_as": (lambda x: x * x.mean((2, 3), keepdim=True).expand_as(x), "resize"),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), "resize"),
    "nearest to a size": (lambda x: F.interpolate(x, (5, 11)), "resize"),
    "nearest, odd scale": (lambda x: F.interpolate(x, scale_factor=1.7), "resize"),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "resize"),
    "bilinear, odd scale": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), "resize"),
    "bilinear, corners": (
        lambda x: F.interpolate(x, (13, 4), mode="bilinear", align_corners=True),
        "resize",
    ),
    "bilinear to one pixel": (lambda x: F.interpolate(x, (1, 1), mode="bilinear"), "resize"),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, WEIGHT, stride=2), "conv_transpose"),
    "conv_transpose2d, all options": (
        lambda x: F.conv_transpose2d(x, WEIGHT, torch.arange(6.0), (2, 3), (1, 2), (1, 2), 2, (2, 1)),
        "conv_transpose",
    ),
    "flatten(2)": (lambda x: x.flatten(2), "reshape"),
    "reshape to a map": (lambda x: x.reshape(len(x), 12, 3, 4), "reshape"),
    "permute": (lambda x: x.permute(0, 2, 3, 1), "permute"),
    "transpose": (lambda x: x.flatten(2).transpose(1, 2), "permute"),
}


@pytest.mark.parametrize("case", CASES)
def test_functional_forms(case: str) -> None:
    forward, op = CASES[case]
    network = same_as_torch(around(forward), torch.randn(3, 3, 10, 10))
    assert op in ops(network)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (
            lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
            "upsample_bicubic2d.* has no counterpart",
        ),
        (lambda x: x.reshape(len(x), 2, 2, 6, 6), "more axes than a packed network"),
        (lambda x: x.reshape(2 * len(x), -1), "mixes the images"),
        (lambda x: x.transpose(0, 1), "moves the batch"),
        (
            lambda x: x.mean((2, 3), keepdim=True)[:, :, :, :1].expand(-1, 4, 6, -1).expand(-1, 4, 6, 6),
            "expand",
        ),
        (lambda x: F.max_pool2d(x, 2, dilation=2), "dilated"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=3), "divisor_override"),
        (lambda x: x.mean(1, keepdim=True), "other than height and width"),
        (lambda x: F.max_pool2d(x.flatten(2), 2), "not a batch of maps"),
    ],
)
def test_what_can_not_be_packed_names_module_and_operator(
    forward: Callable[[Tensor], Tensor], reason: str
) -> None:
    with pytest.raises(CannotPack, match=f"^2: .*({reason})"):
        latentbit.pack(around(forward), torch.randn(1, 3, 10, 10))


@pytest.mark.parametrize("n_out", [1, 2, 3, 7, 10, 23])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_places_are_those_of_torch_for_any_size(n_out: int, mode: str) -> None:
    """Maps of one axis with steps of 1: what torch gives is the place that it read."""
    ramp = torch.arange(10.0).view(1, 1, 10, 1)
    for corners in (False, True) if mode == "bilinear" else (None,):
        resize = nn.Upsample((n_out, 1), mode=mode, align_corners=corners)
        found = latentbit.pack(nn.Sequential(resize), ramp).layers[0].tensors
        at = (found["row"] + found["row_share"]).clip(max=9)  # behind the last comes the last again
        torch.testing.assert_close(torch.from_numpy(at).float(), resize(ramp).view(-1))


def test_pools_over_the_whole_map_are_one_layer() -> None:
    for pool in (nn.AvgPool2d(6), nn.AdaptiveAvgPool2d(1)):
        model = around(lambda x: x, nn.Sequential(pool, nn.Flatten()))
        assert ops(same_as_torch(model, torch.randn(2, 3, 10, 10))) == ["conv", "conv", "global_avg_pool"]


def test_a_pooled_map_may_go_on_as_a_map() -> None:
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 7, 1), nn.Flatten())
    network = same_as_torch(around(lambda x: x, head), torch.randn(2, 3, 10, 10))
    assert ops(network) == ["conv", "conv", "avg_pool", "conv", "flatten"]


def test_a_tensor_of_one_axis_is_a_map_of_one_row() -> None:
    assert as_value((3, 7)) == (3, 1, 7)
    assert as_value((3,)) == (3,) and as_value((3, 2, 7)) == (3, 2, 7)


class OneAxis(nn.Module):
    """A network on signals, as it is written for audio or text."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(2, 8, 5, padding=2), nn.BatchNorm1d(8), nn.PReLU(8))
        self.body = nn.Sequential(
            nn.Conv1d(8, 16, 3, stride=2, padding=1), nn.BatchNorm1d(16), nn.PReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 16, 3, padding="same", groups=4), nn.BatchNorm1d(16), nn.SiLU(), nn.AvgPool1d(3, 1, 1),
        )  # fmt: skip
        self.shift = nn.Parameter(torch.randn(1, 16, 1))
        self.fc = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(self.stem(x)) + self.shift
        return self.fc(F.adaptive_avg_pool1d(x, 1).flatten(1) + x.mean(2))


def test_networks_of_one_axis() -> None:
    model = OneAxis()
    swapped = latentbit.binarize_(model)
    assert swapped.swapped == ("body.0", "body.4")
    network = same_as_torch(binary(OneAxis()), torch.randn(3, 2, 40))
    assert network.input_shape == (2, 1, 40)
    assert ops(network).count("binary_conv") == 2
