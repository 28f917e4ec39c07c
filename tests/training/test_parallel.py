"""What two processes really exchange is counted in test_distributed.py."""

import pytest
import torch
from test_methods import small_net
from torch import nn

from latentbit import binarize_, methods
from latentbit.layers import BINARY_LAYERS
from latentbit.objective import Objective
from latentbit.training.parallel import foreign_buffers, freeze_unused_


def objective_of(method: str, view: str) -> Objective:
    model = small_net()
    binarize_(model, methods.create(method, {}), only=["2", "5"])  # cbcn takes no linear layer
    for layer in model.modules():
        if isinstance(layer, BINARY_LAYERS):
            layer.view = view
    return Objective(model, num_classes=10, latent="none")


@pytest.mark.parametrize("view", ["binary", "stale"])
@pytest.mark.parametrize("method", methods.names())
def test_what_is_not_frozen_has_a_gradient_and_what_is_has_none(method, view) -> None:
    free, frozen = objective_of(method, view), objective_of(method, view)
    names = freeze_unused_(frozen)
    images, labels = torch.randn(4, 1, 8, 8), torch.tensor([0, 1, 2, 3])
    for objective in (free, frozen):
        objective(images, labels).loss.backward()
    without = {name for name, p in free.model.named_parameters() if p.grad is None}
    assert set(names) == without
    assert all(p.grad is not None for p in frozen.parameters() if p.requires_grad)
    if view == "binary":
        assert not names


def test_buffers_of_other_code_are_exchanged_and_those_of_batchnorm_are_not() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

    assert foreign_buffers(objective_of("rbnn", "binary")) == []
    model = nn.Sequential(nn.BatchNorm2d(2), Counts())
    assert foreign_buffers(model) == ["1.seen"]
