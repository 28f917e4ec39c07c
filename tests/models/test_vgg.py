import pytest
import torch
from torch import nn
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models


def test_counts() -> None:
    model = models.create("vgg_small")
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    weights = 9 * (3 * 128 + 128 * 128 + 128 * 256 + 256 * 256 + 256 * 512 + 512 * 512)
    norms = 2 * 2 * (128 + 256 + 512)
    assert sum(p.numel() for p in model.parameters()) == weights + norms + 8192 * 10 + 10
    assert round((weights + norms + 81930) / 1e6, 2) == 4.66
    assert len(convs) == 6
    binarize_(model)
    assert sum(isinstance(m, BinaryConv2d) for m in model.modules()) == 5


def test_order_is_conv_pool_norm_hardtanh() -> None:
    model = models.create("vgg_small").eval()
    x = y = torch.randn(2, 3, 32, 32)
    for i, width in enumerate((128, 128, 256, 256, 512, 512)):
        part = model.get_submodule("features")
        y = F.conv2d(y, part.get_submodule(f"conv{i}").weight, padding=1)
        if i in (1, 3, 5):
            y = y.unfold(2, 2, 2).unfold(3, 2, 2).amax((4, 5))
        y = (y / (1 + 1e-5) ** 0.5).clamp(-1, 1)
        assert y.shape[1] == width
    classifier = model.get_submodule("fc")
    torch.testing.assert_close(model(x), y.flatten(1) @ classifier.weight.T, rtol=1e-4, atol=1e-4)


def test_dropout_sits_before_the_classifier() -> None:
    model = models.create("vgg_small").train()
    seen = []
    model.get_submodule("fc").register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    model.forward_head(torch.ones(4, 512, 4, 4))
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
    assert (seen[0] == 0).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_final_map_fits_the_classifier_to_small_images() -> None:
    model = models.create("vgg_small", in_channels=1, final_map=1).eval()
    assert model.get_submodule("fc").in_features == 512
    assert model(torch.randn(2, 1, 8, 8)).shape == (2, 10)
