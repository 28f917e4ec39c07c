"""The seam: what holds for every file in methods/. Formulas of each are in tests/methods/."""

import pytest
import torch
from torch import nn

import latentbit
from latentbit import methods
from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective


def small_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8),
        nn.Conv2d(8, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.PReLU(8),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Flatten(),
        nn.Linear(16 * 16, 32), nn.BatchNorm1d(32), nn.Linear(32, 10),
    )  # fmt: skip


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images[:512], dtype=torch.float32).unsqueeze(1) / 8 - 1
    return images, torch.tensor(data.target[:512])


def test_the_folder_is_the_registry() -> None:
    assert {"sign", "bnn", "xnor", "xnor_pp", "bireal"} <= set(methods.names())
    with pytest.raises(methods.UnknownMethod, match="did you mean 'bireal'"):
        methods.find("bi_real")


@pytest.mark.parametrize("latent", ["none", "label_aware"])
@pytest.mark.parametrize("name", methods.names())
def test_trains_with_and_without_latent_supervision(name, latent) -> None:
    images, labels = digits()
    model = small_net()
    latentbit.binarize_(model, name)
    objective = Objective(model, num_classes=10, latent=latent, projection="none", latent_weight=0.01)
    optimizer = torch.optim.Adam(objective.parameters(), 5e-3)
    history = []
    for step in range(30):
        batch = slice(128 * (step % 4), 128 * (step % 4 + 1))
        outcome = objective(images[batch], labels[batch])
        optimizer.zero_grad()
        outcome.loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in model.modules():
                if isinstance(layer, BINARY_LAYERS):
                    layer.binarizer.after_step(layer.weight, 5e-3)
        history.append(float(outcome.terms["task"]))
    assert sum(history[-4:]) < 0.6 * sum(history[:4])


@pytest.mark.parametrize("name", methods.names())
def test_state_round_trip_gives_the_same_outputs(name) -> None:
    first, second = small_net(), small_net()
    latentbit.binarize_(first, name)
    latentbit.binarize_(second, name)
    second.load_state_dict(first.state_dict())
    x = torch.randn(4, 1, 8, 8)
    assert torch.equal(first.eval()(x), second.eval()(x))


@pytest.mark.parametrize("name", methods.names())
def test_deployed_signs_and_scales_rebuild_the_binary_view(name) -> None:
    layer = nn.Sequential(nn.Conv2d(6, 4, 3, bias=False))
    latentbit.binarize_(layer, name, keep=[])
    binary = layer[0]
    deployed = binary.binarizer.deploy(binary.weight.detach())
    assert set(deployed.signs.unique().tolist()) <= {-1.0, 1.0}
    x = torch.randn(2, 6, 5, 5)
    bits = torch.where(x - deployed.threshold.view(1, -1, 1, 1) < 0, -1.0, 1.0)
    y = nn.functional.conv2d(bits, deployed.signs) * deployed.scale.view(1, -1, 1, 1)
    torch.testing.assert_close(layer.eval()(x), y)
