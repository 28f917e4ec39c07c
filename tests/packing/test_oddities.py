import warnings

import pytest
import torch
from relu_networks import ResNet, relu_cnn
from torch import nn

import latentbit
from latentbit.errors import LatentbitWarning


def test_a_network_without_binary_layers_packs_and_says_so() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)).eval()
    with pytest.warns(
        LatentbitWarning, match="Sequential has no binary layer: every weight is packed as a real"
    ):
        latentbit.pack(model, torch.zeros(1, 1, 8, 8))


def test_binary_layers_behind_a_relu_are_named_however_it_gets_there() -> None:
    model = relu_cnn()
    model[5] = nn.ReLU()
    latentbit.binarize_(model)
    with pytest.warns(LatentbitWarning, match="binary layers 3, 7 see only what a ReLU lets through"):
        latentbit.pack(model.eval(), torch.zeros(1, 1, 8, 8))
    residual = ResNet()
    latentbit.binarize_(residual)
    with pytest.warns(
        LatentbitWarning, match=r"blocks.0.conv1, blocks.0.conv2, blocks.1.conv1, blocks.1.conv2"
    ):
        latentbit.pack(residual.eval(), torch.zeros(1, 1, 8, 8))


@pytest.mark.parametrize("act", [nn.ReLU6(), nn.Sigmoid(), nn.Hardsigmoid(), nn.Hardtanh(0, 1)])
def test_other_activations_that_are_never_negative_are_named_too(act: nn.Module) -> None:
    up = nn.Upsample(scale_factor=2)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), act, up, nn.Conv2d(4, 4, 3), nn.Conv2d(4, 2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        latentbit.binarize_(model, keep=("0", "4"))
    with pytest.warns(LatentbitWarning, match="binary layer 3 sees only"):
        latentbit.pack(model.eval(), torch.zeros(1, 1, 8, 8))


def test_a_sound_network_packs_in_silence(recwarn) -> None:
    model = relu_cnn()
    latentbit.binarize_(model, activation="prelu")
    latentbit.pack(model.eval(), torch.zeros(1, 1, 8, 8))
    assert not [w for w in recwarn if issubclass(w.category, LatentbitWarning)]
