import torch
from packing_models import binary, same_as_torch
from torch import nn
from torch.nn import functional as F

from latentbit import BinaryConv2d, binarize_, models
from latentbit.models.real_to_binary import Block


def test_a_block_against_its_formula() -> None:
    torch.manual_seed(0)
    block = Block(16, 8, 1).double()
    nn.init.uniform_(block.act.weight, -1, 1)
    x = torch.randn(3, 16, 5, 5, dtype=torch.float64)
    z = (x - x.mean((0, 2, 3), keepdim=True)) / (x.var((0, 2, 3), unbiased=False, keepdim=True) + 1e-5).sqrt()
    first, second = block.gate.reduce.weight[:, :, 0, 0], block.gate.expand.weight[:, :, 0, 0]
    gate = torch.sigmoid((z.mean((2, 3)) @ first.T).clamp(min=0) @ second.T)
    v = F.conv2d(z, block.conv.weight, padding=1) * gate[:, :, None, None]
    y = torch.where(v >= 0, v, block.act.weight.view(1, -1, 1, 1) * v)
    torch.testing.assert_close(block(x), y + block.shortcut(x))
    assert block.gate.reduce.bias is None and block.gate.expand.bias is None


def test_gates_and_shortcuts_stay_real() -> None:
    with torch.device("meta"):
        model = models.create("resnet18_real_to_binary")
        binarize_(model, "bnn")
    layers = [m for m in model.modules() if isinstance(m, BinaryConv2d)]
    assert len(layers) == 16 and round(sum(m.weight.numel() for m in layers) / 1e6, 3) == 10.985
    gates = sum(p.numel() for name, p in model.named_parameters() if ".gate." in name)
    assert round(gates / 1e6, 2) == 0.29


def test_it_packs() -> None:
    model = models.create("resnet18_real_to_binary", num_classes=5, widths=(8, 16))
    same_as_torch(binary(model, method="bnn"), torch.randn(2, 3, 31, 31))
