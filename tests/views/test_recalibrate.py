import pytest
import torch
from test_methods import digits
from torch import nn
from torch.nn import functional as F
from views.test_two_view import binary_net

from latentbit import latent_view, recalibrate, stale_view
from latentbit.views import ViewError


def test_recalibrate_gives_the_average_statistics_of_the_batches() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    batches = [torch.randn(10, 3, dtype=torch.float32) * 2 + 5 for _ in range(4)]
    model[0].running_mean.fill_(99.0)
    model.eval()
    assert recalibrate(model, iter(batches)) == 4
    torch.testing.assert_close(model[0].running_mean, torch.stack([b.mean(0) for b in batches]).mean(0))
    torch.testing.assert_close(model[0].running_var, torch.stack([b.var(0) for b in batches]).mean(0))
    assert model[0].momentum == 0.1 and not model[0].training and not model[1].training


def test_recalibrate_puts_modes_back_when_a_batch_fails() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3))
    with pytest.raises(RuntimeError):
        recalibrate(model, [torch.randn(2, 4)])
    assert model[0].momentum == 0.1 and model.training
    with pytest.raises(ViewError, match="no batch"):
        recalibrate(model, [])


def test_recalibration_restores_w() -> None:
    """The paper's Table 1 in small: W with stale statistics is far below B, recalibrated W is near it."""
    images, labels = digits()
    model = binary_net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(80):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    latent = latent_view(model)
    recalibrate(latent, [images])

    def accuracy(view: nn.Module) -> float:
        with torch.no_grad():
            return float((view(images).argmax(1) == labels).float().mean())

    b, w, w_dagger = accuracy(model), accuracy(stale_view(model)), accuracy(latent)
    assert b > 0.95 and w_dagger > 0.85 and w < w_dagger
