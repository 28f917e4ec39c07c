import pytest
import torch
from packing_models import binary, same_as_torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.models.bnext import BNext, Unit
from latentbit.models.shortcuts import BadWidths


def normalised(x: Tensor) -> Tensor:
    mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (var + 1e-5).sqrt()


def prelu(v: Tensor, weight: Tensor) -> Tensor:
    return torch.where(v >= 0, v, weight.view(1, -1, 1, 1) * v)


@pytest.mark.parametrize("multiply", [False, True])
def test_a_unit_against_its_formula(multiply: bool) -> None:
    torch.manual_seed(0)
    unit = Unit(8, 3, 2, multiply=multiply).double().train()
    unit.share.data.uniform_(-0.5, 1.5)
    x = torch.randn(3, 8, 6, 6, dtype=torch.float64)
    s = unit.share.detach().clamp(0, 1)

    def pooled(v: Tensor) -> Tensor:
        return v.unfold(2, 2, 2).unfold(3, 2, 2).mean((4, 5))

    c = prelu(normalised(F.conv2d(x, unit.conv.weight, stride=2, padding=1)), unit.act.weight)
    g = c * unit.gate(s * pooled(x) + (1 - s) * c)
    if multiply:
        assert unit.residual_act is not None
        residual = pooled(prelu(x, unit.residual_act.weight))
        expected = normalised(g * residual) + residual
    else:
        expected = normalised(g) + pooled(x)
    torch.testing.assert_close(unit(x), expected)
    torch.testing.assert_close(unit.share.detach(), s)


def test_sizes_are_those_of_the_release() -> None:
    published = {
        "tiny": [32, 64, *[128] * 2, *[256] * 2, *[512] * 6, *[1024] * 2],
        "small": [48, 96, *[192] * 2, *[384] * 2, *[768] * 6, *[1536] * 2],
        "middle": [48, 96, *[192] * 4, *[384] * 4, *[768] * 8, *[1536] * 4],
        "large": [64, 128, *[256] * 4, *[512] * 4, *[1024] * 16, *[2048] * 4],
    }
    for size, widths in published.items():
        with torch.device("meta"):
            model = models.create(f"bnext_{size}")
        assert isinstance(model, BNext)
        found = [block.spatial.conv.in_channels for block in model.blocks]  # type: ignore[union-attr]
        assert [*found, model.fc.in_features] == widths
        strides = [block.spatial.conv.stride[0] for block in model.blocks]  # type: ignore[union-attr]
        assert sum(stride == 2 for stride in strides) == 4 and strides[0] == 1
        multiplying = [block.spatial.residual_act is not None for block in model.blocks]  # type: ignore[union-attr]
        assert multiplying == [i % 2 == 1 for i in range(len(multiplying))]
    with pytest.raises(BadWidths, match="8 -> 12: a block keeps its channels or doubles them"):
        models.create("bnext_tiny", widths=(8, 12))


def test_it_packs_and_gates_stay_real() -> None:
    model = models.create("bnext_tiny", num_classes=5, widths=(8, 16, 32, 32), stem_stride=1)
    binarize_(model, "reactnet")
    assert sum(isinstance(m, BinaryConv2d) for m in model.modules()) == 3 + 5
    model = models.create("bnext_tiny", num_classes=5, widths=(8, 16, 32, 32), stem_stride=1)
    same_as_torch(binary(model, method="reactnet"), torch.randn(2, 3, 7, 7))
