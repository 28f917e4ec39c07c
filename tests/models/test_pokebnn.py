import pytest
import torch
from packing_models import binary, same_as_torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.models import pokebnn
from latentbit.models.pokebnn import PokeConv
from latentbit.models.shortcuts import BadWidths


def normalised(x: Tensor) -> Tensor:
    mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (var + 1e-5).sqrt()


def test_the_last_convolution_of_a_bottleneck_against_its_formula() -> None:
    torch.manual_seed(0)
    unit = PokeConv(8, 32, 1, 1, block=(16, 2)).double()
    for parameter in unit.act.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(3, 8, 3, 3, dtype=torch.float64)
    began = torch.randn(3, 16, 6, 6, dtype=torch.float64)
    padded = F.pad(began, (1, 1, 1, 1))
    halved = padded.unfold(2, 3, 2).unfold(3, 3, 2).mean((4, 5))  # zeros outside count
    v = normalised(F.conv2d(x, unit.conv.weight))
    v = v + torch.cat([x, torch.zeros(3, 24, 3, 3, dtype=torch.float64)], 1) + torch.cat([halved, halved], 1)
    act = unit.act
    v = v - act.before
    v = torch.where(v >= 0, act.slopes.positive, act.slopes.negative) * v - act.after
    mean = x.mean((2, 3))
    first, second = unit.gate.reduce, unit.gate.expand
    inner = (mean @ first.weight[:, :, 0, 0].T + first.bias).clamp(min=0)
    gate = (inner @ second.weight[:, :, 0, 0].T + second.bias + 3).clamp(0, 6) / 6
    torch.testing.assert_close(unit(x, began), normalised(v * gate[:, :, None, None]))


def test_too_many_channels_are_averaged_in_groups_of_neighbours() -> None:
    x = torch.arange(12.0).view(1, 6, 1, 2)
    y = pokebnn.fit(6, 2, 1, zeros=True)(x)
    torch.testing.assert_close(y, torch.stack([x[:, :3].mean(1), x[:, 3:].mean(1)], 1))
    with pytest.raises(BadWidths, match="6 -> 4: one must be a multiple of the other"):
        pokebnn.fit(6, 4, 1, zeros=True)


def test_layout_is_that_of_resnet_50() -> None:
    with torch.device("meta"):
        model = models.create("pokebnn")
        binarize_(model, "bireal")
        assert model.forward_features(torch.empty(1, 3, 224, 224)).shape == (1, 2048, 7, 7)
    layers = [m for m in model.modules() if isinstance(m, BinaryConv2d)]
    assert len(layers) == 48
    assert type(model.get_submodule("stem.grouped")) is torch.nn.Conv2d
    bottlenecks = zip((64, 128, 256, 512), (64, 256, 512, 1024), (3, 4, 6, 3), strict=True)
    weights = sum(b * w + 9 * w * w + 4 * w * w + (d - 1) * (8 + 9) * w * w for w, b, d in bottlenecks)
    assert sum(m.weight.numel() for m in layers) == weights


def test_it_packs_and_begins_bottlenecks_as_their_skips() -> None:
    model = models.create("pokebnn", num_classes=5, widths=(8, 16), depths=(2, 1), stem=4)
    assert not model.get_submodule("stages.0.1.third.norm").weight.any()
    same_as_torch(binary(model, method="bireal"), torch.randn(2, 3, 24, 24))
