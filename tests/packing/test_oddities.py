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


def test_a_sound_network_packs_in_silence(recwarn) -> None:
    model = relu_cnn()
    latentbit.binarize_(model, activation="prelu")
    latentbit.pack(model.eval(), torch.zeros(1, 1, 8, 8))
    assert not [w for w in recwarn if issubclass(w.category, LatentbitWarning)]
