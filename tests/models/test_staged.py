import torch
from torch import nn

from latentbit.models.staged import Staged, stages


def conv(before: int, width: int, stride: int) -> nn.Module:
    return nn.Conv2d(before, width, 3, stride, padding=1)


def test_every_stage_but_the_first_halves_the_map_once() -> None:
    made = stages(conv, (4, 8, 8), (1, 2, 3))
    found = [[(c.in_channels, c.out_channels, c.stride[0]) for c in stage] for stage in made]
    assert found == [[(4, 4, 1)], [(4, 8, 2), (8, 8, 1)], [(8, 8, 2), (8, 8, 1), (8, 8, 1)]]


def test_it_classifies_the_mean_of_the_last_map_and_names_its_stages() -> None:
    model = Staged(conv(3, 4, 1), stages(conv, (4, 8), (1, 2)), 8, 5)
    images = torch.randn(2, 3, 6, 10)
    x = model.stages[1](model.stages[0](model.stem(images)))
    assert x.shape == (2, 8, 3, 5)
    torch.testing.assert_close(model(images), x.mean((2, 3)) @ model.fc.weight.T + model.fc.bias)
    assert model.stage_names == ("stages.0", "stages.1")
    assert model.get_submodule(model.stage_names[-1]) is model.stages[-1]
