"""ReLUs in front of binary layers: found, named, replaced."""

import pytest
import torch
from relu_networks import ResNet, relu_cnn
from torch import nn

from latentbit import Objective, TwoView, binarize_, constant_inputs
from latentbit.binarize.feeding import CannotReplace, blocked
from latentbit.errors import LatentbitWarning


class Branching(nn.Module):
    """Cannot be traced: it looks at the values."""

    def __init__(self) -> None:
        super().__init__()
        self.net = relu_cnn()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x if x.sum() > 0 else -x)


def images() -> torch.Tensor:
    return torch.randn(8, 1, 8, 8)


def test_what_feeds_a_binary_layer_is_replaced_and_told() -> None:
    model = relu_cnn()
    done = binarize_(model, activation="prelu")
    assert done.replaced == (("2", "ReLU -> PReLU(8)"), ("5", "ReLU6 -> PReLU(16)"))
    assert "instead 5  ReLU6 -> PReLU(16)" in str(done) and "WARNING" not in str(done)
    assert isinstance(model[9], nn.ReLU)  # it feeds the classifier, which is real
    assert constant_inputs(model, images()) == []
    assert "ReLU6 -> RPReLU(16)" in str(binarize_(relu_cnn(), activation="rprelu"))
    assert "ReLU -> Hardtanh" in str(binarize_(relu_cnn(), activation="hardtanh"))


def test_nothing_is_replaced_unless_asked_and_the_printout_warns() -> None:
    model = relu_cnn()
    done = binarize_(model)
    assert done.replaced == () and done.blocked == (("3", "2"), ("7", "5"))
    assert "WARNING 3 sees +1 everywhere: 2 in front of it is never negative" in str(done)
    assert isinstance(model[2], nn.ReLU)


def test_a_relu_module_that_is_called_twice_and_one_that_is_a_function() -> None:
    model = ResNet()
    done = binarize_(model, activation="prelu")
    assert [name for name, _ in done.replaced] == ["blocks.0.relu", "blocks.1.relu"]
    assert done.blocked == (
        ("blocks.0.conv1", "relu"),
    )  # F.relu in the forward: only its author can change it
    assert constant_inputs(model, images()) == ["blocks.0.conv1"]


def test_a_forward_that_cannot_be_traced_has_all_its_relus_replaced() -> None:
    model = Branching()
    assert blocked(model) is None
    done = binarize_(model, activation="prelu")
    assert [name for name, _ in done.replaced] == ["net.2", "net.5", "net.9"]
    assert constant_inputs(model, images()) == []


def test_the_function_that_a_transformer_layer_keeps() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)
    done = binarize_(model, keep=[], activation="prelu")
    assert done.replaced == (("layers.0.activation", "relu -> PReLU(1)"),)
    assert constant_inputs(model, torch.randn(4, 3, 8)) == []


def test_such_a_layer_inside_a_network_that_can_be_traced() -> None:
    encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Linear(4, 8), encoder, nn.Flatten(), nn.Linear(24, 2))
    done = binarize_(model, activation="prelu")
    assert done.replaced == (("1.activation", "relu -> PReLU(1)"),)
    assert constant_inputs(model, torch.randn(4, 3, 4)) == []


def test_activations_that_keep_the_sign_of_x_are_left_alone() -> None:
    for kind in (nn.SiLU, nn.GELU, nn.Hardswish, nn.PReLU, nn.LeakyReLU, nn.Tanh):
        model = nn.Sequential(nn.Conv2d(1, 4, 3), kind(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 2))
        assert binarize_(model, activation="prelu").replaced == ()
        assert constant_inputs(model, images()) == []


def test_an_activation_that_is_none_is_refused() -> None:
    with pytest.raises(CannotReplace, match="activation='relu': choose prelu, rprelu, hardtanh or None"):
        binarize_(relu_cnn(), activation="relu")  # type: ignore[arg-type]


@pytest.mark.parametrize("latent", ["none", "label_aware"])
def test_the_first_batch_of_an_objective_names_the_layers_once(latent) -> None:
    model = relu_cnn()
    binarize_(model)
    objective = Objective(model, num_classes=10, latent=latent)
    with pytest.warns(
        LatentbitWarning, match="binary layers 3, 7 see the same sign everywhere in the first batch"
    ):
        objective(images(), torch.arange(8))
    assert all(len(m._forward_pre_hooks) == 0 for m in (model[3], model[7]))


def test_the_first_batch_of_two_views_names_the_layer_and_the_second_does_not(recwarn) -> None:
    model = relu_cnn()
    binarize_(model, keep=["0", "3", "11"])
    views = TwoView(model)
    views(images())
    views(images())
    said = [str(w.message) for w in recwarn if issubclass(w.category, LatentbitWarning)]
    assert (
        len(said) == 1 and said[0].startswith("binary layer 7 sees the same sign") and "nn.PReLU" in said[0]
    )


def test_a_method_with_bits_0_and_1_may_stand_behind_a_relu(recwarn) -> None:
    model = relu_cnn()
    binarize_(model, "dorefa")
    Objective(model, num_classes=10, latent="none")(images(), torch.arange(8))
    assert not [w for w in recwarn if issubclass(w.category, LatentbitWarning)]


@pytest.mark.parametrize("name", ["dorefa", "hwgq", "abc_net", "rbnn"])
def test_thresholds_that_are_not_zero_do_not_need_negative_numbers(name) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(4, 2))
    swapped = binarize_(model, name, activation="prelu")
    assert swapped.blocked == swapped.replaced == ()
