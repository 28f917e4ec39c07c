import pytest
import torch
from torch.nn import functional as F

from latentbit import models
from latentbit.models.standard_resnet import BasicBlock


@pytest.mark.parametrize(("name", "parameters"), [("resnet18", 11_689_512), ("resnet34", 21_797_672)])
def test_parameters_are_those_of_torchvision(name: str, parameters: int) -> None:
    with torch.device("meta"):
        model = models.create(f"{name}_standard")
    assert sum(p.numel() for p in model.parameters()) == parameters
    keys = set(model.state_dict())
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.conv2.weight", "fc.bias"} <= keys
    assert {"layer2.0.downsample.0.weight", "layer4.0.downsample.1.bias"} <= keys
    assert not any(key.startswith("layer1.0.downsample") for key in keys)


def test_block_against_formula() -> None:
    torch.manual_seed(0)
    block = BasicBlock(4, 8, 2).double().eval()
    x = torch.randn(2, 4, 7, 7, dtype=torch.float64)
    scale = (1 + 1e-5) ** -0.5
    y = (F.conv2d(x, block.conv1.weight, stride=2, padding=1) * scale).clamp(min=0)
    y = F.conv2d(y, block.conv2.weight, padding=1) * scale
    down = torch.einsum(
        "nchw,oc->nohw", x[:, :, ::2, ::2], block.downsample.get_submodule("0").weight[:, :, 0, 0]
    )
    torch.testing.assert_close(block(x), (y + down * scale).clamp(min=0))
