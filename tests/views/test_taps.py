import pytest
import torch
from torch import nn

from latentbit import binarize_, models
from latentbit.views import FeatureTap, OutputTap, TwoView, ViewError, stage_tap


def test_an_output_tap_catches_one_armed_forward_and_forgets_it() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    tap = OutputTap([model[0], model[2]])
    x = torch.randn(5, 3)
    model(x)
    assert tap.outputs == []  # not armed
    tap.arm()
    y = model(x)
    caught = tap.take()
    assert torch.equal(caught[0], model[0](x)) and torch.equal(caught[1], y)
    assert tap.take() == []


def test_a_feature_tap_names_a_classifier_that_the_forward_does_not_reach() -> None:
    model = nn.ModuleDict({"used": nn.Linear(3, 2), "unused": nn.Linear(3, 2)})
    tap = FeatureTap(model, "unused")
    tap.arm()
    model["used"](torch.randn(1, 3))
    with pytest.raises(ViewError, match="did not reach 'unused'"):
        tap.take()


def test_features_are_taken_before_the_dropout_in_front_of_the_classifier() -> None:
    """Both views draw masks of their own: behind them two equal features would be half their norm apart."""
    model = models.create("vgg_small", in_channels=1, final_map=1).train()
    binarize_(model)
    views = TwoView(model)(torch.randn(2, 1, 8, 8))
    z = views.features
    assert (z == 0).float().mean() < 0.01 and z.abs().max() <= 1  # hard tanh, not doubled
    masked = nn.Sequential(nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, 2)).train()
    tap = FeatureTap(masked, "2")  # what lies between takes part
    tap.arm()
    masked(torch.ones(4, 6))
    assert set(tap.take()[0].unique().tolist()) <= {0.0, 2.0}


def test_stages_are_those_that_the_network_names() -> None:
    model = models.create("resnet18_compact").eval()
    tap = stage_tap(model)
    tap.arm()
    model(torch.randn(1, 3, 32, 32))
    assert [tuple(y.shape[1:]) for y in tap.take()] == [(16, 32, 32), (16, 16, 16), (32, 8, 8), (64, 4, 4)]
    with pytest.raises(ViewError, match="stage_names"):
        stage_tap(nn.Linear(1, 1))
