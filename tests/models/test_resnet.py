from fnmatch import fnmatch

import pytest
import torch
from packing_models import binary, same_as_torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.errors import LatentbitError
from latentbit.models.resnet import Block, Norm, ResNet
from latentbit.models.shortcuts import BadWidths, Shortcut


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


RELEASES: dict[str, dict[str, object]] = {
    "irnet": {
        "stem": "hardtanh",
        "shortcut": "subsample",
        "head_norm": True,
        "activation": "hardtanh",
        "norm": "after",
    },
    "recu": {"stem": "hardtanh", "shortcut": "average", "head_norm": True, "activation": "hardtanh"},
    "adabin": {"stem": "maxout", "shortcut": "subsample", "head_norm": True, "activation": "maxout"},
    "sibnn": {"shortcut": "conv_first", "norm": "both", "activation": "identity", "head_relu": True},
}


def test_the_network_of_irnet_against_its_formula() -> None:
    """hardtanh(BN(conv(x)) + S(x)) everywhere, the stem too, and BN in front of the classifier."""
    torch.manual_seed(0)
    model = models.create("resnet20", widths=(4, 8), **RELEASES["irnet"]).double()
    x = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    parameters = dict(model.named_parameters())
    y = normalised(F.conv2d(x, parameters["stem.conv.weight"], padding=1)).clamp(-1, 1)
    for stage in (0, 1):
        for block in range(6):
            stride = 2 if (stage, block) == (1, 0) else 1
            s = y[:, :, ::stride, ::stride]
            if stride == 2:
                s = torch.cat([torch.zeros_like(s[:, :2]), s, torch.zeros_like(s[:, :2])], 1)
            weight = parameters[f"stages.{stage}.{block}.conv.weight"]
            y = (normalised(F.conv2d(y, weight, stride=stride, padding=1)) + s).clamp(-1, 1)
    z = y.mean((2, 3))
    z = (z - z.mean(0)) / (z.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(model(x), z @ parameters["fc.weight"].T + parameters["fc.bias"])


@pytest.mark.parametrize("release", RELEASES)
def test_networks_of_releases_pack(release: str) -> None:
    same_as_torch(
        binary(models.create("resnet20", widths=(4, 8), **RELEASES[release])), torch.randn(2, 3, 9, 9)
    )


def test_weights_start_by_fan_in_and_gamma_where_asked() -> None:
    torch.manual_seed(0)
    model = models.create("resnet18", init="fan_in", gamma=1e-8, stem="hardtanh")
    last = model.get_submodule("stages.3.0.conv").weight  # 256 to 512 channels, stride 2
    assert last.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.01)
    assert model.get_submodule("fc").weight.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.01)
    assert model.get_submodule("stages.1.2.norm").weight.unique().tolist() == pytest.approx([1e-8])
    assert [name for name, _ in model.get_submodule("stem").named_children()] == [
        "conv",
        "norm",
        "act",
        "pool",
    ]
    with pytest.raises(LatentbitError, match="init 'fan': must be one of fan_out, fan_in"):
        models.create("resnet20", init="fan")
