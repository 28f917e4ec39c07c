import pytest
import torch
from torch import Tensor, nn

from latentbit.errors import LatentbitError
from latentbit.models import shortcuts
from latentbit.models.shortcuts import BadWidths

SIDES = [(8, 8), (5, 7)]


def averaged(x: Tensor) -> Tensor:
    """Windows of 2x2, cut at the far end of odd sides."""
    rows = torch.stack([x[:, :, i : i + 2].mean(2) for i in range(0, x.shape[2], 2)], 2)
    return torch.stack([rows[:, :, :, j : j + 2].mean(3) for j in range(0, x.shape[3], 2)], 3)


def mixed(x: Tensor, path: nn.Module) -> Tensor:
    """1x1 convolution and BN as it starts."""
    weight = path.get_submodule("conv").weight
    return torch.einsum("nchw,oc->nohw", x, weight[:, :, 0, 0]) / (1 + 1e-5) ** 0.5


def images(side: tuple[int, int]) -> Tensor:
    return torch.randn(2, 4, *side, dtype=torch.float64)


@pytest.mark.parametrize("side", SIDES)
def test_conv_averages_first_and_conv_first_last(side: tuple[int, int]) -> None:
    x = images(side)
    path = shortcuts.create(4, 8, 2, "conv").double().eval()
    torch.testing.assert_close(path(x), mixed(averaged(x), path))
    path = shortcuts.create(4, 8, 2, "conv_first").double().eval()
    assert [name for name, _ in path.named_children()] == ["conv", "norm", "pool"]
    torch.testing.assert_close(path(x), averaged(mixed(x, path)))


@pytest.mark.parametrize("side", SIDES)
def test_zeros_stand_on_both_sides_of_every_second_pixel_or_of_averages(side: tuple[int, int]) -> None:
    x = images(side)
    for kind, small in (("subsample", x[:, :, ::2, ::2]), ("average", averaged(x))):
        y = shortcuts.create(4, 8, 2, kind)(x)  # type: ignore[arg-type]
        torch.testing.assert_close(y[:, 2:6], small)
        assert y.shape[1] == 8 and not y[:, :2].any() and not y[:, 6:].any()
        assert shortcuts.create(4, 7, 1, kind)(x).shape == (2, 7, *side)  # type: ignore[arg-type]


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(BadWidths, match=r'8 -> 4: zeros can only be added, use shortcut="conv"'):
        shortcuts.create(8, 4, 2, "average")
    with pytest.raises(LatentbitError, match="shortcut 'none': must be one of pool, conv, conv_first, sub"):
        shortcuts.create(4, 4, 1, "none")  # type: ignore[arg-type]
    assert isinstance(shortcuts.create(4, 4, 1, "subsample"), nn.Identity)
