import pytest
import torch
from torch import nn

from latentbit import models
from latentbit.training.teacher import Teacher
from latentbit.views import ViewError


def test_soft_labels_and_maps_without_gradient() -> None:
    network = models.create("resnet18_standard", num_classes=7).train()
    teacher = Teacher(network, with_maps=True)
    images = torch.randn(2, 3, 64, 64)
    logits, maps = teacher(images)
    assert [tuple(m.shape[1:]) for m in maps] == [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]
    torch.testing.assert_close(logits, network.eval()(images).detach())
    torch.testing.assert_close(maps[-1], network.forward_features(images).detach())
    assert not logits.requires_grad and not any(p.requires_grad for p in network.parameters())
    assert Teacher(network, with_maps=False)(images)[1] == []


def test_a_network_that_does_not_name_its_stages_is_refused() -> None:
    with pytest.raises(ViewError, match="Sequential has no stage_names"):
        Teacher(nn.Sequential(nn.Linear(2, 2)), with_maps=True)
