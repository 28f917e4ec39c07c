from fnmatch import fnmatch

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.errors import LatentbitError
from latentbit.models.resnet import BadWidths, Block, Norm, ResNet, Shortcut


def counts(model: nn.Module) -> tuple[int, int, int]:
    """Binary convolutions, their weights, all parameters."""
    binary = [m for m in model.modules() if isinstance(m, BinaryConv2d)]
    return len(binary), sum(m.weight.numel() for m in binary), sum(p.numel() for p in model.parameters())


def stage_weights(widths: tuple[int, ...], depths: tuple[int, ...]) -> int:
    before = (widths[0], *widths[:-1])
    return sum(9 * b * w + 9 * w * w * (d - 1) for b, w, d in zip(before, widths, depths, strict=True))


@pytest.mark.parametrize(
    ("name", "widths", "depths", "millions"),
    [
        ("resnet18_compact", (16, 16, 32, 64), (4, 4, 4, 4), 0.180),
        ("resnet20", (16, 32, 64), (6, 6, 6), 0.267),
        ("resnet18", (64, 128, 256, 512), (4, 4, 4, 4), 10.985),
        ("resnet34", (64, 128, 256, 512), (6, 8, 12, 6), 21.086),
    ],
)
@pytest.mark.parametrize("shortcut", ["pool", "conv"])
def test_counts(
    name: str, widths: tuple[int, ...], depths: tuple[int, ...], millions: float, shortcut: Shortcut
) -> None:
    with torch.device("meta"):
        model = models.create(name, shortcut=shortcut)
        binarize_(model)
    convs, weights, total = counts(model)
    assert convs == sum(depths)
    assert weights == stage_weights(widths, depths)
    assert round(weights / 1e6, 3) == millions
    small, classes = (
        name in ("resnet18_compact", "resnet20"),
        10 if len(widths) == 3 or widths[0] == 16 else 1000,
    )
    channels = widths[0] + sum(w * d for w, d in zip(widths, depths, strict=True))
    stem = (27 if small else 147) * widths[0]
    slopes = channels if small else channels - widths[0]
    path = [b * w + 2 * w for b, w in zip(widths, widths[1:], strict=False)] if shortcut == "conv" else []
    inputs = channels - widths[-1]  # of the binary convolutions, each with a BatchNorm
    assert total == weights + stem + 2 * (channels + inputs) + slopes + (widths[-1] + 1) * classes + sum(path)


def test_resnet20_has_270_thousand_parameters() -> None:
    assert round(counts(models.create("resnet20"))[2] / 1e6, 2) == 0.27


def test_maps_shrink_as_in_the_paper() -> None:
    with torch.device("meta"):
        model = models.create("resnet18_compact")
        sides = []
        assert isinstance(model, ResNet)
        x = model.stem(torch.empty(1, 3, 32, 32))
        for stage in model.stages:
            x = stage(x)
            sides.append(tuple(x.shape[1:]))
        assert sides == [(16, 32, 32), (16, 16, 16), (32, 8, 8), (64, 4, 4)]
        big = models.create("resnet18")
        assert big.forward_features(torch.empty(1, 3, 224, 224)).shape == (1, 512, 7, 7)


def normalised(x: Tensor) -> Tensor:
    mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (var + 1e-5).sqrt()


def oracle(block: Block, x: Tensor, stride: int, times: int, norm: Norm) -> Tensor:
    """PReLU(BN(conv(BN(x))) + S(x)) from arithmetic, S by explicit windows."""
    y = F.conv2d(x if norm == "after" else normalised(x), block.conv.weight, stride=stride, padding=1)
    y = y if norm == "before" else normalised(y)
    s = x
    if stride == 2:
        rows = [s[:, :, i : i + 2].amax(2) for i in range(0, s.shape[2], 2)]
        s = torch.stack(rows, 2)
        s = torch.stack([s[:, :, :, j : j + 2].amax(3) for j in range(0, s.shape[3], 2)], 3)
    s = torch.cat([s for _ in range(times)], 1)
    v = y + s
    return torch.where(v >= 0, v, block.act.weight.view(1, -1, 1, 1) * v)


@pytest.mark.parametrize(("before", "width", "stride"), [(4, 4, 1), (4, 8, 2), (4, 4, 2), (3, 9, 1)])
@pytest.mark.parametrize("side", [(8, 8), (7, 8), (5, 7), (1, 3)])
@pytest.mark.parametrize("norm", ["after", "before", "both"])
def test_block_against_formula(
    before: int, width: int, stride: int, side: tuple[int, int], norm: Norm
) -> None:
    torch.manual_seed(0)
    block = Block(before, width, stride, norm=norm).double()
    nn.init.uniform_(block.act.weight, -1, 1)
    x = torch.randn(3, before, *side, dtype=torch.float64)
    torch.testing.assert_close(block(x), oracle(block, x, stride, width // before, norm))


@pytest.mark.parametrize("side", [(8, 8), (5, 7)])
def test_conv_shortcut_is_average_pool_conv_norm(side: tuple[int, int]) -> None:
    torch.manual_seed(0)
    block = Block(4, 8, 2, shortcut="conv").double().eval()
    x = torch.randn(2, 4, *side, dtype=torch.float64)
    rows = torch.stack([x[:, :, i : i + 2].mean(2) for i in range(0, side[0], 2)], 2)
    pooled = torch.stack([rows[:, :, :, j : j + 2].mean(3) for j in range(0, side[1], 2)], 3)
    weight = block.shortcut.get_submodule("conv").weight
    expected = torch.einsum("nchw,oc->nohw", pooled, weight[:, :, 0, 0]) / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(block.shortcut(x), expected)


def test_keep_real_names_the_convolutions_of_the_shortcuts() -> None:
    model = models.create("resnet18_compact", shortcut="conv")
    assert isinstance(model, ResNet)
    kept = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d) and any(fnmatch(name, pattern) for pattern in model.keep_real)
    ]
    assert kept == [f"stages.{i}.0.shortcut.conv" for i in (1, 2, 3)]
    binarize_(model)
    assert all(type(model.get_submodule(name)) is nn.Conv2d for name in kept)


def test_widths_that_can_not_be_repeated_are_refused() -> None:
    with pytest.raises(BadWidths, match=r'16 -> 24: not a multiple, use shortcut="conv"'):
        models.create("resnet18_compact", widths=(16, 24))
    assert models.create("resnet18_compact", widths=(16, 24), shortcut="conv")(
        torch.randn(2, 3, 8, 8)
    ).shape == (2, 10)
    with pytest.raises(LatentbitError, match="shortcut 'none'"):
        models.create("resnet20", shortcut="none")
    with pytest.raises(LatentbitError, match="norm 'none': must be one of after, before, both"):
        models.create("resnet20", norm="none")


@pytest.mark.parametrize("norm", ["before", "both"])
def test_norm_before_the_sign_balances_the_bits(norm: Norm) -> None:
    torch.manual_seed(0)
    model = models.create("resnet18_compact", in_channels=1, norm=norm)
    binarize_(model)
    negative: list[float] = []
    for module in model.modules():
        if isinstance(module, BinaryConv2d):
            module.register_forward_pre_hook(
                lambda m, args: negative.append((args[0] < 0).float().mean().item())
            )
    nn.functional.cross_entropy(model(torch.randn(32, 1, 8, 8)), torch.arange(32) % 10).backward()
    assert len(negative) == 16 and all(0.4 < share < 0.75 for share in negative)
