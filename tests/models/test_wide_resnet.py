import torch

from latentbit import BinaryConv2d, binarize_, models


def test_counts() -> None:
    model = models.create("wrn22")
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 1) == 4.3
    binarize_(model)
    binary = [m for m in model.modules() if isinstance(m, BinaryConv2d)]
    assert len(binary) == 18
    weights = 9 * (6 * 64 * 64 + 64 * 128 + 5 * 128 * 128 + 128 * 256 + 5 * 256 * 256)
    assert sum(m.weight.numel() for m in binary) == weights


def test_maps_are_32_16_8() -> None:
    with torch.device("meta"):
        assert models.create("wrn22").forward_features(torch.empty(1, 3, 32, 32)).shape == (1, 256, 8, 8)
