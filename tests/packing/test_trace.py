"""From module to layers: names, what is copied, and what is refused before any operator is looked at."""

import packing_models
import pytest
import torch
from packing_models import Functional, binary, same_as_torch
from torch import Tensor, nn

import latentbit
from latentbit import BinaryConv2d, TwoView, latent_view
from latentbit.packing import CannotPack
from latentbit.packing.trace import trace


def _small() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.PReLU(6)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )


def test_layers_are_named_by_their_modules() -> None:
    layers = trace(binary(_small()), torch.randn(1, 3, 8, 8))
    assert [layer.name for layer in layers] == ["0", "1.0.sign", "1.0", "1.1", "1.2", "2", "3", "4"]
    assert [layer.shape for layer in layers][:4] == [(4, 6, 6), (4, 6, 6), (6, 4, 4), (6, 4, 4)]


def test_a_module_called_twice_is_two_layers() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        x = self.mix(self.mix(self.stem(x)))
        return self.fc(x.mean((2, 3)))

    parts = {"stem": nn.Conv2d(3, 4, 3), "mix": nn.Conv2d(4, 4, 1), "fc": nn.Linear(4, 2)}
    network = same_as_torch(binary(Functional(forward, **parts)), torch.randn(2, 3, 6, 6))
    assert {"mix", "mix@2"} <= {layer.name for layer in network.layers}


def test_the_model_is_left_as_it_was() -> None:
    model = binary(_small()).train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    latentbit.pack(model, torch.randn(2, 3, 8, 8))
    assert model.training and isinstance(model[1][0], BinaryConv2d)  # type: ignore[index]
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


def test_training_mode_and_half_precision_do_not_matter() -> None:
    model = binary(_small())
    images = torch.randn(2, 3, 8, 8)
    expected = latentbit.lbit.to_bytes(latentbit.pack(model, images))
    assert latentbit.lbit.to_bytes(latentbit.pack(model.train(), images.double())) == expected


def test_a_two_view_packs_its_binary_half() -> None:
    model = binary(_small())
    views = TwoView(model).eval()
    images = torch.randn(4, 3, 8, 8)
    views(images)
    same_as_torch(model, images, latentbit.pack(views, images))


def test_vectors_in() -> None:
    model = binary(
        nn.Sequential(
            nn.Linear(20, 65), nn.BatchNorm1d(65), nn.Linear(65, 9), nn.BatchNorm1d(9), nn.Linear(9, 4)
        )
    )
    network = same_as_torch(model, torch.randn(5, 20))
    assert network.input_shape == (20, 1, 1)
    assert packing_models.ops(network) == ["flatten", "linear", "sign", "binary_linear", "linear"]


def test_first_and_last_may_be_binary_too() -> None:
    same_as_torch(binary(_small(), keep=[]), torch.randn(4, 3, 8, 8))


def test_a_map_may_be_the_output() -> None:
    """As in segmentation: logits of every pixel, (N, classes, H, W)."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.PReLU(), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 5, 1))
    network = same_as_torch(binary(model, keep=("0", "3")), torch.randn(2, 3, 8, 8))
    assert network.output_shape == (5, 6, 6) and network.n_outputs == 5


@pytest.mark.parametrize(
    ("model", "shape", "reason"),
    [
        (latent_view(binary(_small())), (1, 3, 8, 8), "^1.0: this is a latent view"),
        (
            nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")),
            (1, 3, 8, 8),
            "^0: padding_mode 'reflect'",
        ),
        (binary(_small()), (1, 4, 8, 8), r"cannot be traced with an input of \[4, 8, 8\]: .*channels"),
        (binary(_small()), (8,), "pass a batch"),
        (Functional(lambda self, x: (x.flatten(1), x)), (1, 3, 8, 8), "returns 2 tensors"),
        (Functional(lambda self, x: x), (1, 3, 8, 8), "returns|flatten"),
        (Functional(lambda self, x: torch.ones(2, 3)), (1, 3, 8, 8), "does not depend on its input"),
        (
            Functional(lambda self, x: x.flatten(1) if x.sum() > 0 else -x.flatten(1)),
            (1, 3, 8, 8),
            "does not branch on the values",
        ),
    ],
)
def test_refusals(model: nn.Module, shape: tuple[int, ...], reason: str) -> None:
    with pytest.raises(CannotPack, match=reason):
        latentbit.pack(model, torch.randn(shape))
