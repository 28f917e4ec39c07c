import copy

import torch
from training.test_optimizers import Flips, net, optim, train

from latentbit.training.combined import Combined
from latentbit.training.optimizers import create


def test_combined_state_round_trips_bit_for_bit(tmp_path) -> None:
    model = net(Flips())
    optimizer = create(model, optim())
    train(model, optimizer, range(3))
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    twin = copy.deepcopy(model)
    resumed = create(twin, optim())
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(model, optimizer, range(3, 6))
    train(twin, resumed, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_the_schedule_reaches_every_part() -> None:
    optimizer = create(net(Flips()), optim())
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    assert {group["lr"] for group in optimizer.param_groups} == {0.005}
    assert isinstance(optimizer, Combined)
    assert {group["lr"] for part in optimizer.parts for group in part.param_groups} == {0.005}
