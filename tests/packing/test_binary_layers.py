"""Binary layers as their methods deploy them: thresholds, offsets, borders of -1, and methods that refuse."""

import copy

import packing_models
import pytest
import torch
from packing_models import ops, same_as_torch, same_on_every_instruction_set
from torch import Tensor, nn

import latentbit
from latentbit import BinaryConv2d, BinaryLinear, methods
from latentbit.errors import LatentbitWarning
from latentbit.methods import AdaBin
from latentbit.methods.parts.binarizer import Binarizer, Deployed, NotDeployable, deploy_zero_one
from latentbit.ops import sign
from latentbit.packing import CannotPack


def _small(conv: nn.Conv2d | None = None) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Sequential(conv or nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.PReLU(6)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )


class Shifted(Binarizer):
    """A threshold per input channel, signs, no scale."""

    def weight(self, w: Tensor) -> Tensor:
        return sign(w)

    def input(self, x: Tensor) -> Tensor:
        return sign(x - self._threshold(x.shape[1]).view(-1, *[1] * (x.dim() - 2)))

    def _threshold(self, n: int) -> Tensor:
        return torch.linspace(-0.5, 0.5, n)

    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(sign(w), torch.ones(1), self._threshold(w.shape[1]))


class Undeployable(Shifted):
    def deploy(self, w: Tensor) -> Deployed:
        raise NotDeployable("it scales every pixel")


class Ternary(Shifted):
    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(torch.zeros_like(w), torch.ones(1), torch.zeros(1))


class WrongScales(Shifted):
    def deploy(self, w: Tensor) -> Deployed:
        return Deployed(sign(w), torch.ones(len(w) + 1), torch.zeros(1))


class ZeroOne(Shifted):
    """Activations 0 and 1, as DoReFa has them."""

    def input(self, x: Tensor) -> Tensor:
        return (super().input(x) + 1) / 2

    def deploy(self, w: Tensor) -> Deployed:
        return deploy_zero_one(sign(w), torch.ones(len(w)), self._threshold(self.n_in))

    def setup(self, layer: nn.Conv2d | nn.Linear) -> None:  # type: ignore[override]
        self.n_in = layer.in_channels if isinstance(layer, nn.Conv2d) else layer.in_features


def _with(binarizer: type[Binarizer], conv: nn.Conv2d | None = None) -> nn.Module:
    model = _small(conv)
    model[1][0] = BinaryConv2d.from_float(model[1][0], binarizer())  # type: ignore[index, arg-type]
    return packing_models.scramble_(model)


def test_thresholds_of_a_method_reach_the_sign() -> None:
    network = same_as_torch(_with(Shifted), torch.randn(4, 3, 8, 8))
    assert network["1.0.sign"].tensors["threshold"].tolist() == torch.linspace(-0.5, 0.5, 4).tolist()


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (Undeployable, "1.0: it scales every pixel"),
        (Ternary, "1.0: .*not .1 or -1"),
        (WrongScales, "1.0: 7 scales for 6"),
    ],
)
def test_methods_that_do_not_deploy(method: type[Binarizer], reason: str) -> None:
    with pytest.raises(CannotPack, match=reason):
        latentbit.pack(_with(method), torch.randn(1, 3, 8, 8))


@pytest.mark.parametrize(
    "conv",
    [
        nn.Conv2d(4, 6, 3),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.Conv2d(4, 6, 3, 2, padding=(2, 1), groups=2),
        nn.Conv2d(4, 6, (3, 2), padding="same", dilation=2, bias=False),
    ],
)
def test_activations_of_0_and_1_have_a_border_of_0(conv: nn.Conv2d) -> None:
    network = same_as_torch(_with(ZeroOne, conv), torch.randn(4, 3, 8, 8))
    assert ("1.0.border" in {layer.name for layer in network.layers}) == (conv.padding != (0, 0))


def test_the_border_stays_exact_with_fewer_float_bits() -> None:
    model = _with(ZeroOne, nn.Conv2d(4, 6, 3, padding=1))
    network = latentbit.pack(model, torch.randn(1, 3, 8, 8), float_bits=8)
    assert network["1.0.border"].tensors["weight"].dtype == "float32"
    assert network["0"].tensors["weight"].dtype == "int8"


def test_activations_of_0_and_1_in_a_linear_layer() -> None:
    model = nn.Sequential(nn.Linear(9, 12), nn.BatchNorm1d(12), nn.Linear(12, 7), nn.Linear(7, 3))
    model[2] = BinaryLinear.from_float(model[2], ZeroOne())  # type: ignore[arg-type]
    network = same_as_torch(packing_models.scramble_(model), torch.randn(6, 9))
    assert ops(network) == ["flatten", "linear", "sign", "binary_linear", "linear"]


def _adabin(conv: nn.Module, alpha: float, beta: float) -> nn.Module:
    """A binary layer of AdaBin that has learned these."""
    kind = BinaryLinear if isinstance(conv, nn.Linear) else BinaryConv2d
    layer = kind.from_float(conv, AdaBin())  # type: ignore[arg-type]
    nn.init.constant_(layer.binarizer.alpha, alpha)
    nn.init.constant_(layer.binarizer.beta, beta)
    return layer


@pytest.mark.parametrize("alpha, beta", [(0.8, 0.3), (1.3, -0.4), (-0.7, 0.2), (1.0, 0.0)])
@pytest.mark.parametrize(
    "conv",
    [
        nn.Conv2d(4, 6, 3),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.Conv2d(4, 6, 3, 2, padding=(2, 1), groups=2),
        nn.Conv2d(4, 6, (3, 2), padding="same", dilation=2, bias=False),
    ],
)
def test_filters_with_means_and_lifted_bits(conv: nn.Conv2d, alpha: float, beta: float) -> None:
    model = packing_models.scramble_(_small(copy.deepcopy(conv)))
    model[1][0] = _adabin(model[1][0], alpha, beta)  # type: ignore[index, operator]
    network = same_as_torch(model, torch.randn(4, 3, 8, 8))
    names = {layer.name for layer in network.layers}
    assert {"1.0.total", "1.0.means"} <= names
    assert ("1.0.border" in names) == (conv.padding != (0, 0) and beta != 0)


def test_filters_with_means_in_a_linear_layer() -> None:
    model = nn.Sequential(nn.Linear(9, 12), nn.BatchNorm1d(12), nn.Linear(12, 7), nn.Linear(7, 3))
    packing_models.scramble_(model)
    model[2] = _adabin(model[2], -0.9, 0.25)
    network = same_as_torch(model, torch.randn(6, 9))
    assert "2.means" in {layer.name for layer in network.layers}


def test_adabin_without_a_step_is_refused() -> None:
    model = _small()
    model[1][0] = _adabin(model[1][0], 0.0, 0.3)  # type: ignore[index, operator]
    with pytest.raises(CannotPack, match="1.0: method adabin has learned alpha = 0"):
        latentbit.pack(model, torch.randn(1, 3, 8, 8))


CONVS = [
    nn.Conv2d(4, 6, 3),
    nn.Conv2d(4, 6, 3, 2, padding=(2, 1), groups=2),
    nn.Conv2d(4, 6, (3, 2), padding="same", dilation=2, bias=False),
]


def _of(name: str, layer: nn.Module) -> nn.Module:
    """The layer binarized by this method, whose parameters are anywhere."""
    kind = BinaryLinear if isinstance(layer, nn.Linear) else BinaryConv2d
    binary = kind.from_float(layer, methods.create(name))  # type: ignore[arg-type]
    for parameter in binary.binarizer.parameters():
        parameter.data.normal_()
    return binary


@pytest.mark.parametrize("conv", CONVS)
@pytest.mark.parametrize("name", ["abc_net", "bwn", "group_net", "hwgq", "insta", "rbnn", "sibnn", "xnor_k"])
def test_methods_that_look_at_the_sample_or_turn_bits_round(name: str, conv: nn.Conv2d) -> None:
    model = packing_models.scramble_(_small(copy.deepcopy(conv)))
    model[1][0] = _of(name, model[1][0])  # type: ignore[index, operator]
    same_on_every_instruction_set(model.eval(), torch.randn(4, 3, 8, 8))


@pytest.mark.parametrize("name", ["abc_net", "bwn", "group_net", "hwgq", "insta", "rbnn", "sibnn", "xnor_k"])
def test_they_pack_in_linear_layers_too(name: str) -> None:
    model = nn.Sequential(nn.Linear(9, 12), nn.BatchNorm1d(12), nn.Linear(12, 7), nn.Linear(7, 3))
    packing_models.scramble_(model)
    model[2] = _of(name, model[2])
    same_on_every_instruction_set(model.eval(), torch.randn(6, 9))


def test_turned_bits_behind_a_max_pool() -> None:
    """-sign(max) is not the greatest of -sign: the layer behind turns its weights instead."""
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(4),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.Flatten(),
        nn.Linear(54, 3),
    )
    packing_models.scramble_(model)
    model[3] = _of("sibnn", model[3])
    model[3].binarizer.slope.data[:2] = torch.tensor([-1.0, 1.0]).view(2, 1, 1)  # type: ignore[union-attr]
    network = same_on_every_instruction_set(model.eval(), torch.randn(4, 3, 8, 8))
    assert ops(network)[:3] == ["conv", "sign", "max_pool"]


def test_what_belongs_to_a_binary_layer_stays_exact_with_fewer_float_bits() -> None:
    model = packing_models.scramble_(_small())
    model[1][0] = _of("rbnn", model[1][0])  # type: ignore[index, operator]
    network = latentbit.pack(model.eval(), torch.randn(1, 3, 8, 8), float_bits=8)
    assert network["1.0.centre"].tensors["weight"].dtype == "float32"
    assert network["1.0.centre@2"].tensors["weight"].dtype == "float32"


@pytest.mark.parametrize("float_bits", [32, 16])
def test_binary_weights_of_real_activations_are_exact_in_8_bits(float_bits: int) -> None:
    model = packing_models.scramble_(_small(nn.Conv2d(4, 6, 3, padding=1)))
    model[1][0] = _of("bwn", model[1][0])  # type: ignore[index, operator]
    network = latentbit.pack(model.eval(), torch.randn(1, 3, 8, 8), float_bits=float_bits)
    layer = network["1.0.signs"]
    assert layer.op == "conv" and layer.tensors["weight"].dtype == "int8"
    norm, binary = model[1][1], model[1][0]  # type: ignore[index]
    expected = binary.weight.abs().mean((1, 2, 3)) * norm.weight / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(torch.from_numpy(layer.tensors["weight_scale"]), expected.abs().detach())


@pytest.mark.parametrize("name", ["abc_net", "bwn"])
def test_neither_real_inputs_nor_one_constant_bit_of_several_are_warned_of(name: str, recwarn) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.Flatten(), nn.Linear(96, 3))
    latentbit.binarize_(model, name)
    same_as_torch(model.eval(), torch.randn(2, 3, 8, 8))
    assert not [w for w in recwarn if issubclass(w.category, LatentbitWarning)]


def test_a_real_layer_that_is_called_as_ours_are_keeps_its_weights() -> None:
    block = nn.ModuleDict({"signs": nn.Conv2d(3, 4, 3)})
    model = packing_models.Functional(
        lambda m, x: m.head(m.block["signs"](x)), block=block, head=_small()[1:]
    )
    latentbit.binarize_(model)
    network = same_as_torch(model.eval(), torch.randn(2, 3, 8, 8))
    assert network["block.signs"].tensors["weight"].dtype == "float32"
