from typing import Annotated, ClassVar

import pytest
import torch

from latentbit.fields import Range
from latentbit.layers import BinaryConv2d, BinaryLinear
from latentbit.methods.parts.binarizer import (
    BadOption,
    Binarizer,
    BinaryLayer,
    LearnedScale,
    NotDeployable,
    deploy_zero_one,
    mean_abs,
    per_input,
    per_output,
)


def test_alpha_is_the_scale_nearest_to_w() -> None:
    w = torch.randn(4, 3, 3, 3, dtype=torch.float64)
    alpha = mean_abs(w)
    error = [((w - per_output(s * alpha, w) * w.sign()) ** 2).sum() for s in (0.99, 1.0, 1.01)]
    assert error[1] < error[0] and error[1] < error[2]


def test_a_method_that_does_not_say_what_it_keeps_is_not_packed() -> None:
    class Mine(Binarizer):
        def weight(self, w: torch.Tensor) -> torch.Tensor:
            return w.sign()

    layer = BinaryConv2d.from_float(torch.nn.Conv2d(2, 2, 1), Mine())
    with pytest.raises(NotDeployable, match="Mine"):
        layer.binarizer.deploy(layer.weight)


def test_activations_of_zero_and_one_become_signs_and_an_offset() -> None:
    signs = torch.randn(4, 3, 3, 3).sign()
    scale = torch.rand(4)
    bits = torch.randint(0, 2, (2, 3, 5, 5)).float()
    deployed = deploy_zero_one(signs, scale, torch.zeros(1))
    expected = torch.nn.functional.conv2d(bits, signs * scale.view(-1, 1, 1, 1), padding=1)
    padded = torch.nn.functional.pad(2 * bits - 1, [1] * 4, value=deployed.pad)
    y = torch.nn.functional.conv2d(padded, signs) * deployed.scale.view(1, -1, 1, 1)
    torch.testing.assert_close(y + deployed.offset.view(1, -1, 1, 1), expected)


def test_vectors_broadcast_over_weights_and_inputs() -> None:
    conv, linear = torch.nn.Conv2d(6, 4, 3, groups=2), torch.nn.Linear(6, 4)
    assert per_output(torch.ones(4), conv.weight).shape == (4, 1, 1, 1)
    assert per_output(torch.ones(4), linear.weight).shape == (4, 1)
    assert per_input(conv, 1.0).shape == (6, 1, 1)
    assert per_input(linear, 1.0).shape == (6,)


def test_a_learned_scale_starts_where_told_and_learns_a_factor() -> None:
    scale = LearnedScale(torch.tensor([0.01, 2.0]))
    assert torch.equal(scale(), torch.tensor([0.01, 2.0]))
    scale().sum().backward()
    assert torch.equal(scale.factor.grad, torch.tensor([0.01, 2.0]))


@pytest.mark.parametrize("layer", [torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.Linear(2, 3)])
def test_a_method_may_change_the_product_and_leaves_the_bias_alone(layer) -> None:
    class Doubled(Binarizer):
        def weight(self, w: torch.Tensor) -> torch.Tensor:
            return w

        def input(self, x: torch.Tensor) -> torch.Tensor:
            return x

        def product(self, x, w, multiply) -> torch.Tensor:
            return 2 * super().product(x, w, multiply)

    x = torch.randn(4, 2, 5, 5) if isinstance(layer, torch.nn.Conv2d) else torch.randn(4, 2)
    shape = (-1, 1, 1) if isinstance(layer, torch.nn.Conv2d) else (-1,)
    expected = 2 * layer(x) - layer.bias.view(shape)
    kind = BinaryConv2d if isinstance(layer, torch.nn.Conv2d) else BinaryLinear
    torch.testing.assert_close(kind.from_float(layer, Doubled())(x), expected)


class Tuned(Binarizer):
    gain: Annotated[float, Range(0, 10)] = 2.0
    """Factor of the output."""
    scales: ClassVar[bool] = True

    def setup(self, layer: BinaryLayer) -> None:
        self.alpha = torch.nn.Parameter(layer.weight.new_ones(len(layer.weight)))


class MoreTuned(Tuned):
    rounds: int = 3
    """Of nothing."""

    def setup(self, layer: BinaryLayer) -> None:
        super().setup(layer)
        self.n = torch.nn.Buffer(torch.tensor(self.rounds))


def test_annotated_fields_are_options_and_inherited() -> None:
    method = MoreTuned(gain=3)
    assert method.options() == {"gain": 3.0, "rounds": 3} and type(method.gain) is float
    assert str(method) == f"{__name__}:MoreTuned (gain=3.0)"
    assert repr(method) == "MoreTuned(gain=3.0, rounds=3)"
    with pytest.raises(
        BadOption, match=r"option gain of method .*:MoreTuned: 11.0 is out of range, it must be b"
    ):
        MoreTuned(gain=11.0)
    with pytest.raises(TypeError, match="gian"):
        MoreTuned(gian=1.0)


def test_each_layer_gets_its_own_state_and_the_method_keeps_none() -> None:
    method = MoreTuned(rounds=5)
    one, two = (BinaryConv2d.from_float(torch.nn.Conv2d(2, n, 1), method) for n in (3, 4))
    assert [len(layer.binarizer.alpha) for layer in (one, two)] == [3, 4]
    assert set(one.state_dict()) == {"weight", "bias", "binarizer.alpha", "binarizer.n"}
    assert int(two.binarizer.n) == 5
    assert not method.state_dict()


def test_what_does_not_fit_the_scheme_is_refused_where_it_is_written() -> None:
    expected = r"Old defines __init__: write its options as annotated fields, .* in setup\(self, layer\)"
    with pytest.raises(TypeError, match=expected):

        class Old(Binarizer):
            def __init__(self, layer) -> None:
                super().__init__()

    with pytest.raises(
        TypeError, match=r"Named\.penalty: every method has a penalty, call the option otherwise"
    ):

        class Named(Binarizer):
            penalty: float = 0.1  # type: ignore[assignment]
