import pytest
import torch
from torch import nn
from torch.nn import functional as F

import latentbit
from latentbit import BinaryConv2d, models
from latentbit.models.expert import ExpertConv
from latentbit.packing import CannotPack


def test_every_image_takes_the_filters_that_its_mean_chooses() -> None:
    """As the release computes it: one set of filters per image, in a convolution of as many groups as images."""
    torch.manual_seed(0)
    layer = ExpertConv(4, 6, 2, 3).double()
    z = torch.randn(8, 4, 5, 5, dtype=torch.float64) + 9 * torch.randn(8, 4, 1, 1, dtype=torch.float64)
    weight, bias = layer.choose.weight[:, :, 0, 0], layer.choose.bias
    chosen = (z.mean((2, 3)) @ weight.T + bias).argmax(1)
    assert len(chosen.unique()) > 1
    filters = torch.cat([layer.experts[i].weight for i in chosen.tolist()])  # type: ignore[misc]
    y = F.conv2d(z.reshape(1, 32, 5, 5), filters, stride=2, padding=1, groups=8)
    torch.testing.assert_close(layer(z), y.reshape(8, 6, 3, 3))


def test_the_choice_learns_as_if_it_were_the_sigmoids() -> None:
    torch.manual_seed(0)
    layer = ExpertConv(4, 6, 1, 3).double()
    z = torch.randn(2, 4, 5, 5, dtype=torch.float64)
    g = torch.randn(2, 6, 5, 5, dtype=torch.float64)
    layer(z).backward(g)
    scores = torch.sigmoid(F.conv2d(z.mean((2, 3), keepdim=True), layer.choose.weight, layer.choose.bias))
    outputs = torch.stack([(conv(z) * g).sum((1, 2, 3)) for conv in layer.experts], 1)  # dL/dchoice
    at_bias = (outputs * (scores * (1 - scores))[:, :, 0, 0]).sum(0)
    torch.testing.assert_close(layer.choose.bias.grad, at_bias)


def test_only_the_experts_become_binary_and_packing_is_refused_by_name() -> None:
    model = models.create("resnet18_expert", num_classes=5, widths=(8, 16))
    latentbit.binarize_(model, "bnn")
    binary = [name for name, module in model.named_modules() if isinstance(module, BinaryConv2d)]
    assert len(binary) == 8 * 4 and all(".experts." in name for name in binary)
    assert type(model.get_submodule("stages.0.0.conv.choose")) is nn.Conv2d
    with pytest.raises(CannotPack, match=r"stages.0.0.conv: aten.zeros_like has no counterpart.*argmax"):
        latentbit.pack(model.eval(), torch.randn(1, 3, 31, 31))
