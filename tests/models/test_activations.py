import numpy as np
import pytest
import torch
from torch import nn

from latentbit import models, pack
from latentbit.binarize import binarize_
from latentbit.engine import Engine
from latentbit.errors import LatentbitError
from latentbit.models.activations import Maxout, RPReLU

X = np.linspace(-2, 2, 24).reshape(2, 3, 2, 2)


def channel(values: nn.Parameter) -> np.ndarray:
    nn.init.normal_(values)
    return values.detach().numpy().reshape(1, 3, 1, 1)


def test_rprelu_is_prelu_between_two_shifts() -> None:
    layer = RPReLU(3).double()
    before, slope, after = channel(layer.before), channel(layer.prelu.weight), channel(layer.after)
    shifted = X + before
    expected = np.where(shifted > 0, shifted, slope * shifted) + after
    np.testing.assert_allclose(layer(torch.tensor(X)).detach().numpy(), expected, rtol=1e-6)


def test_maxout_has_a_slope_for_each_side() -> None:
    layer = Maxout(3).double()
    assert [float(p.detach()[0]) for p in (layer.positive, layer.negative)] == [1.0, 0.25]
    positive, negative = channel(layer.positive), channel(layer.negative)
    expected = np.where(X > 0, positive * X, negative * X)
    np.testing.assert_allclose(layer(torch.tensor(X)).detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["prelu", "rprelu", "maxout", "hardtanh", "identity"])
def test_a_network_of_each_packs_and_runs(name: str) -> None:
    torch.manual_seed(0)
    model = models.create("resnet18_compact", in_channels=1, widths=(8, 16), norm="both", activation=name)
    binarize_(model)
    for parameter in model.parameters():
        if parameter.dim() != 4:
            parameter.data += 0.1 * torch.randn_like(parameter)
    images = torch.randn(4, 1, 8, 8)
    model.train()(images)
    model.eval()
    logits = Engine(pack(model, images))(images.numpy())
    np.testing.assert_allclose(logits, model(images).detach().numpy(), atol=1e-3)


def test_another_name_is_refused() -> None:
    with pytest.raises(
        LatentbitError,
        match="activation 'gelu': must be one of prelu, rprelu, maxout, dprelu, hardtanh, identity",
    ):
        models.create("wrn22", activation="gelu")
