import copy
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import binarize_
from latentbit.methods.bop import Bop, FlipOptimizer
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer
from latentbit.recipes import Optim
from latentbit.training.combined import Combined
from latentbit.training.optimizers import create


def optim(name: Literal["adam", "adamw", "sgd"] = "adam", nesterov: bool = True) -> Optim:
    return Optim(optimizer=name, lr=0.01, weight_decay=0.1, nesterov=nesterov)


class Flips(Bop):
    """Brings an optimizer of its own, and a parameter that does not decay."""

    decays = False

    def setup(self, layer: BinaryLayer) -> None:
        super().setup(layer)
        self.gain = nn.Parameter(torch.ones(()))

    def weight(self, w: Tensor) -> Tensor:
        return super().weight(w) * self.gain


def net(method: Binarizer | str = "xnor_pp") -> nn.Sequential:
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    binarize_(model, method)
    return model


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        F.cross_entropy(model(x), torch.arange(8) % 3).backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("name", "nesterov"), [("adam", True), ("adamw", True), ("sgd", True), ("sgd", False)]
)
def test_every_parameter_is_trained_as_torch_does(name, nesterov) -> None:
    model = net()
    twin = copy.deepcopy(model)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    options = {"momentum": 0.9, "nesterov": nesterov} if name == "sgd" else {}
    train(model, create(model, optim(name, nesterov)), range(3))
    train(twin, kinds[name](twin.parameters(), lr=0.01, weight_decay=0.1, fused=True, **options), range(3))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_a_method_brings_its_rule_for_binary_weights_only() -> None:
    model = net(Flips())
    optimizer = create(model, optim())
    assert isinstance(optimizer, Combined)
    decay = {id(p): g.get("weight_decay") for g in optimizer.param_groups for p in g["params"]}
    assert len(decay) == len(list(model.parameters()))
    assert decay[id(model[1].weight)] is None and decay[id(model[1].binarizer.gain)] == 0.0
    assert decay[id(model[1].bias)] == 0.1
    before = model[0].weight.detach().clone()
    train(model, optimizer, range(2))
    assert set(model[1].weight.unique().tolist()) <= {-1.0, 1.0}
    assert not torch.equal(before, model[0].weight)


def test_layers_of_one_method_share_its_optimizer_and_other_options_get_their_own() -> None:
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)])
    binarize_(model, {"1": Bop(), "[23]": Bop(gamma=0.5, tau=0.1), "4": "bop"})
    optimizer = create(model, optim())
    assert isinstance(optimizer, Combined)
    _, first, second = optimizer.parts
    assert isinstance(first, FlipOptimizer) and isinstance(second, FlipOptimizer)
    (plain,), (strong,) = first.param_groups, second.param_groups
    assert (plain["gamma"], plain["tau"], plain["lr"]) == (1e-3, 1e-6, 0.01)
    assert (strong["gamma"], strong["tau"]) == (0.5, 0.1)
    assert [id(p) for p in plain["params"]] == [id(model[1].weight), id(model[4].weight)]
    assert [id(p) for p in strong["params"]] == [id(model[2].weight), id(model[3].weight)]
