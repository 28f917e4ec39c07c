import copy
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from latentbit import binarize_
from latentbit.methods.parts.binarizer import Binarizer
from latentbit.recipes import Optim
from latentbit.training.optimizers import Bop, Combined, create


def optim(name: Literal["adam", "adamw", "sgd"] = "adam") -> Optim:
    return Optim(optimizer=name, lr=0.01, weight_decay=0.1)


def net() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    binarize_(model, "xnor_pp")
    return model


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        F.cross_entropy(model(x), torch.arange(8) % 3).backward()
        optimizer.step()


@pytest.fixture
def flips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binary layers bring Bop; their own parameters do not decay."""
    monkeypatch.setattr(Binarizer, "optimizer", Bop)
    monkeypatch.setattr(Binarizer, "decays", False)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_every_parameter_is_trained_as_torch_does(name) -> None:
    model = net()
    twin = copy.deepcopy(model)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    options = {"momentum": 0.9, "nesterov": True} if name == "sgd" else {}
    train(model, create(model, optim(name)), range(3))
    train(twin, kinds[name](twin.parameters(), lr=0.01, weight_decay=0.1, fused=True, **options), range(3))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_bop_flips_where_the_mean_gradient_is_strong_and_has_the_sign_of_b() -> None:
    rng = np.random.default_rng(0)
    b = np.where(rng.random((6, 7)) < 0.5, -1.0, 1.0)
    p = nn.Parameter(torch.from_numpy(b.copy()))
    bop = Bop([p], lr=0.5, gamma=0.1, tau=0.05)
    m = np.zeros_like(b)
    flipped = 0
    for step in range(10):
        bop.param_groups[0]["lr"] = 0.5 if step < 5 else 0.25  # the schedule halves gamma
        gamma = 0.1 if step < 5 else 0.05
        g = rng.normal(size=b.shape)
        p.grad = torch.from_numpy(g.copy())
        bop.step()
        m = (1 - gamma) * m + gamma * g
        change = (np.abs(m) > 0.05) & (np.sign(m) == b)
        b = np.where(change, -b, b)
        flipped += change.sum()
        np.testing.assert_array_equal(p.detach().numpy(), b)
    assert flipped > 10


def test_a_method_brings_its_rule_for_binary_weights_only(flips) -> None:
    model = net()
    optimizer = create(model, optim())
    assert isinstance(optimizer, Combined)
    decay = {id(p): g.get("weight_decay") for g in optimizer.param_groups for p in g["params"]}
    assert len(decay) == len(list(model.parameters()))
    assert decay[id(model[1].weight)] is None and decay[id(model[1].binarizer.gamma)] == 0.0
    assert decay[id(model[1].bias)] == 0.1
    before = model[0].weight.detach().clone()
    train(model, optimizer, range(2))
    assert set(model[1].weight.unique().tolist()) <= {-1.0, 1.0}
    assert not torch.equal(before, model[0].weight)


def test_combined_state_round_trips_bit_for_bit(flips, tmp_path) -> None:
    model = net()
    optimizer = create(model, optim())
    train(model, optimizer, range(3))
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    twin = copy.deepcopy(model)
    resumed = create(twin, optim())
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(model, optimizer, range(3, 6))
    train(twin, resumed, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_the_schedule_reaches_every_part(flips) -> None:
    optimizer = create(net(), optim())
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    assert {group["lr"] for group in optimizer.param_groups} == {0.005}
    assert isinstance(optimizer, Combined)
    assert {group["lr"] for part in optimizer.parts for group in part.param_groups} == {0.005}
