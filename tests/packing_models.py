"""Modules for the tests of packing, with BN statistics that matter, and the comparison with the oracle."""

from collections.abc import Callable

import lbit_oracle
import numpy as np
import torch
from torch import Tensor, nn

import latentbit
from latentbit.engine import Engine, available
from latentbit.lbit import Network


def scramble_(model: nn.Module) -> nn.Module:
    """BN as training might leave it and worse: negative gammas, a zero one, far means. In eval mode."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            if module.affine:
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
                module.weight.data[0] = 0
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(std=2)
            module.running_var.uniform_(0.5, 4)
        if isinstance(module, nn.PReLU):
            module.weight.data.uniform_(-0.2, 0.8)
    return model.eval()


def binary(model: nn.Module, **options: object) -> nn.Module:
    latentbit.binarize_(model, **options)  # type: ignore[arg-type]
    return scramble_(model)


def same_as_torch(model: nn.Module, images: Tensor, network: Network | None = None) -> Network:
    """Pack it, and check the logits of the oracle and of the engine against the module's."""
    network = network or latentbit.pack(model, images)
    with torch.no_grad():
        expected = model(images).numpy()
    shaped = images.numpy().reshape(len(images), *network.input_shape)
    logits = lbit_oracle.values(network, shaped, np.float32)[network.layers[-1].name]
    largest = np.abs(expected).max()
    assert largest > 0
    assert np.abs(logits - expected).max() <= 1e-4 * largest
    assert np.abs(Engine(network)(shaped) - expected).max() <= 1e-4 * largest
    return network


def same_on_every_instruction_set(model: nn.Module, images: Tensor) -> Network:
    """The same, on all that this processor has."""
    network = same_as_torch(model, images)
    shaped = images.numpy().reshape(len(images), *network.input_shape)
    first, *others = [Engine(network, isa=isa)(shaped) for isa in available()]
    for other in others:
        assert np.abs(other - first).max() <= 1e-5 * np.abs(first).max()
    return network


def ops(network: Network) -> list[str]:
    return [layer.op for layer in network.layers]


class Functional(nn.Module):
    """A module whose forward is any function of itself and x."""

    def __init__(self, forward: Callable[..., Tensor], **children: nn.Module) -> None:
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)
        self.function = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


class Act(nn.Module):
    """A child whose forward is under test, so that errors can name it."""

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = forward
        self.shift = nn.Parameter(torch.tensor([-1.0, -0.1, 0.3, 2.0]).view(1, 4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def around(forward: Callable[[Tensor], Tensor], head: nn.Module | None = None) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), Act(forward), head or Head()).eval()


class Head(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)
