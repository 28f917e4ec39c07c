import pytest
import torch
from packing_models import binary, same_as_torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.models import cost
from latentbit.models.activations import RPReLU
from latentbit.models.reactnet import Block
from latentbit.models.shortcuts import BadWidths


def test_cost_is_the_published_one() -> None:
    with torch.device("meta"):
        model = models.create("reactnet_a")
        binarize_(model, "reactnet")
    total = cost.count(model, (3, 224, 224)).total()
    assert sum(isinstance(m, BinaryConv2d) for m in model.modules()) == 26
    assert round(total.bops / 1e9, 2) == 4.82 and round(total.macs / 1e8, 2) == 0.12
    assert round(total.binary_params / 1e6, 1) == 28.3


def rprelu(act: RPReLU, v: Tensor, channels: slice) -> Tensor:
    v = v + act.before[channels]
    slope = act.prelu.weight[channels].view(1, -1, 1, 1)
    return torch.where(v >= 0, v, slope * v) + act.after[channels]


def test_a_block_is_that_of_the_release_with_two_convolutions_side_by_side() -> None:
    """Where channels double, the release has two 1x1 convolutions over one input, each with the skip added."""
    torch.manual_seed(0)
    block = Block(4, 8, 2).double().eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(2, 4, 6, 6, dtype=torch.float64)

    def norm(y: Tensor, layer: torch.nn.BatchNorm2d, channels: slice) -> Tensor:
        scale = layer.weight[channels] / (1 + 1e-5) ** 0.5
        return y * scale.view(1, -1, 1, 1) + layer.bias[channels].view(1, -1, 1, 1)

    every = slice(None)
    pooled = x.unfold(2, 2, 2).unfold(3, 2, 2).mean((4, 5))
    y = norm(F.conv2d(x, block.conv3.weight, stride=2, padding=1), block.norm3, every) + pooled
    y = rprelu(block.act3, y, every)
    halves = []
    for half in (slice(0, 4), slice(4, 8)):
        z = norm(F.conv2d(y, block.conv1.weight[half]), block.norm1, half) + y
        halves.append(rprelu(block.act1, z, half))
    torch.testing.assert_close(block(x), torch.cat(halves, 1))


def test_maps_halve_where_channels_double_but_for_the_first_time() -> None:
    with torch.device("meta"):
        model = models.create("reactnet_a")
        assert model.forward_features(torch.empty(1, 3, 224, 224)).shape == (1, 1024, 7, 7)
    assert [len(stage) for stage in model.stages] == [1, 2, 2, 6, 2]
    with pytest.raises(BadWidths, match="8 -> 12: a block keeps its channels or repeats them"):
        models.create("reactnet_a", widths=(8, 12))


def test_it_packs() -> None:
    model = models.create("reactnet_a", num_classes=5, widths=(8, 16, 32, 32))
    same_as_torch(binary(model, method="reactnet"), torch.randn(2, 3, 15, 15))
