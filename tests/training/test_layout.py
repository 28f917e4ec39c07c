import torch
from torch import Tensor, nn

from latentbit import binarize_, models
from latentbit.training.layout import fastest_layout, in_layout


class Viewing(nn.Module):
    """Flattens as many networks do, which needs the usual order."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return self.fc(x.view(len(x), -1))


def test_channels_last_unless_the_network_refuses_it() -> None:
    assert fastest_layout(models.create("resnet18_compact"), (3, 32, 32)) == torch.channels_last
    assert fastest_layout(Viewing(), (3, 8, 8)) == torch.contiguous_format


def test_trying_leaves_modes_and_statistics_alone() -> None:
    model = models.create("resnet18_compact").train()
    model.get_submodule("stem.norm").eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fastest_layout(model, (3, 32, 32))
    assert model.training and not model.get_submodule("stem.norm").training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_order_in_memory_changes_no_image_and_the_logits_only_in_rounding() -> None:
    images = torch.randn(2, 3, 32, 32)
    turned = in_layout(images, torch.channels_last)
    assert torch.equal(turned, images) and turned.stride() != images.stride()
    model = models.create("resnet18_compact").eval().double()
    binarize_(model)
    torch.testing.assert_close(model(turned.double()), model(images.double()))
    assert in_layout(torch.zeros(2, 3), torch.channels_last).shape == (2, 3)
