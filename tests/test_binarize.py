import copy

import pytest
import torch
from test_methods import digits, small_net
from torch import nn
from torch.nn import functional as F

from latentbit import binarize_
from latentbit.binarize import CannotBinarize, constant_inputs, first_and_last
from latentbit.layers import BinaryConv2d, BinaryLinear
from latentbit.methods import IRNet, Sign


class Functional(nn.Module):
    """A user's network: functional calls, a tied layer, a layer in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(3)])
        self.mixer = nn.Conv2d(8, 8, 3, padding=1)
        self.again = self.mixer
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](self.stem(x))
        x = F.leaky_relu(self.norms[1](self.mixer(x)) + x, 0.25)
        x = F.max_pool2d(self.norms[2](self.again(x)), 2)
        return self.head(x.flatten(1))


def test_keeps_first_conv_and_last_linear_and_says_so() -> None:
    model = small_net()
    done = binarize_(model)
    assert done.swapped == ("2", "5", "8")
    assert [name for name, _ in done.kept] == ["0", "10"]
    assert type(model[0]) is nn.Conv2d and type(model[10]) is nn.Linear
    assert type(model[2]) is BinaryConv2d and type(model[8]) is BinaryLinear
    assert "binary  2" in str(done) and "real    10" in str(done)


def test_keep_and_only_take_names_globs_and_functions() -> None:
    assert binarize_(small_net(), keep=[]).swapped == ("0", "2", "5", "8", "10")
    assert binarize_(small_net(), keep=["1*", "0"]).swapped == ("2", "5", "8")
    assert binarize_(small_net(), keep=lambda layers: first_and_last(layers) | {"5"}).swapped == ("2", "8")
    assert binarize_(small_net(), only=["5", "8"]).swapped == ("5", "8")
    assert binarize_(small_net(), only=lambda name, layer: isinstance(layer, nn.Linear)).swapped == ("8",)


def test_a_method_is_a_name_or_an_object_with_options() -> None:
    model = small_net()
    done = binarize_(model, IRNet(t_min=0.1))
    assert done.methods == ("irnet (t_min=0.1)",) * 3
    assert str(done).splitlines()[:2] == [
        "binarized 3 layers with method irnet (t_min=0.1), kept 2 real",
        "  binary  2",
    ]
    assert {model[i].binarizer.t_min for i in (2, 5, 8)} == {0.1}
    assert str(binarize_(small_net(), "irnet")).startswith(
        "binarized 3 layers with method irnet, kept 2 real"
    )
    with pytest.raises(CannotBinarize, match=r"is neither a name nor a Binarizer: write IRNet\(\)"):
        binarize_(small_net(), IRNet)  # type: ignore[arg-type]
    with pytest.raises(CannotBinarize, match="method 3 is neither a name nor a Binarizer"):
        binarize_(small_net(), 3)  # type: ignore[arg-type]


def test_a_method_per_layer_the_first_pattern_counts() -> None:
    model = small_net()
    done = binarize_(model, {"2": Sign(), "[58]": IRNet(t_max=5.0), "*": "bnn"}, keep=["0"])
    assert str(done).splitlines() == [
        "binarized 4 layers with 3 methods, kept 1 real",
        "  binary  2  sign",
        "  binary  5  irnet (t_max=5.0)",
        "  binary  8  irnet (t_max=5.0)",
        "  binary  10  bnn",
        "  real    0  (kept by keep=)",
    ]
    assert [type(model[i].binarizer).__name__ for i in (2, 5, 8, 10)] == ["Sign", "IRNet", "IRNet", "BNN"]


def test_a_layer_without_a_pattern_stays_real_and_a_pattern_without_a_layer_is_an_error() -> None:
    done = binarize_(small_net(), {"5": "sign"})
    assert done.swapped == ("5",)
    assert ("2", "no pattern of method= matches") in done.kept
    with pytest.raises(CannotBinarize, match=r"method='stage\.\*' matches no layer; layers: 0, 2, 5, 8, 10"):
        binarize_(small_net(), {"stage.*": "sign", "*": "irnet"})
    with pytest.raises(
        CannotBinarize, match="method='5' comes too late: patterns before it match every layer"
    ):
        binarize_(small_net(), {"*": "sign", "5": "irnet"})


def test_a_misspelt_name_is_an_error_not_a_layer_binarized_by_mistake() -> None:
    with pytest.raises(CannotBinarize, match="'steam' matches no layer; layers: stem"):
        binarize_(Functional(), keep=["steam"])


def test_models_may_say_what_must_stay_real() -> None:
    model = small_net()
    model.keep_real = ("5",)
    assert binarize_(model).swapped == ("2", "8")


def test_a_shared_layer_is_swapped_at_every_place() -> None:
    model = Functional()
    assert binarize_(model).swapped == ("mixer",)
    assert type(model.mixer) is BinaryConv2d and model.again is model.mixer


def test_tied_weights_and_optimizer_state_survive() -> None:
    model = nn.Sequential(*[nn.Linear(6, 6) for _ in range(4)])
    model[2].weight = model[1].weight
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    model(torch.randn(3, 6)).sum().backward()
    optimizer.step()
    state = optimizer.state[model[1].weight]["exp_avg"].clone()
    binarize_(model)
    assert model[2].weight is model[1].weight
    assert torch.equal(optimizer.state[model[1].weight]["exp_avg"], state)
    before = model[1].weight.detach().clone()
    optimizer.zero_grad()
    model(torch.randn(3, 6)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(model[1].weight, before)


class MyConv(nn.Conv2d):
    pass


def test_refusals_name_the_module() -> None:
    with pytest.raises(CannotBinarize, match="wrap it in nn.Sequential"):
        binarize_(nn.Linear(2, 2))
    with pytest.raises(CannotBinarize, match="holds no nn.Conv1d, nn.Conv2d or nn.Linear"):
        binarize_(nn.Sequential(nn.ReLU()))
    with pytest.raises(CannotBinarize, match=r"every layer .* stays real: 0 .*, 1 .*keep=\[\]"):
        binarize_(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    with pytest.raises(CannotBinarize, match="1 .LazyLinear. is not initialised"):
        binarize_(nn.Sequential(nn.Conv2d(1, 1, 1), nn.LazyLinear(3)))
    quantized = torch.ao.nn.quantized.dynamic.Linear(4, 4)
    with pytest.raises(CannotBinarize, match="1 .Linear. is already quantised"):
        binarize_(nn.Sequential(nn.Linear(4, 4), quantized))
    assert ("1", "MyConv overrides Conv2d") in binarize_(
        nn.Sequential(nn.Conv2d(1, 2, 1), MyConv(2, 2, 1), nn.Conv2d(2, 2, 1), nn.Linear(2, 2))
    ).kept


def test_layers_without_a_binary_form_are_named_where_they_stay_real() -> None:
    model = nn.Sequential(nn.Conv3d(1, 4, 3), nn.Linear(3, 3), nn.ConvTranspose2d(4, 4, 2), nn.Linear(3, 3))
    assert binarize_(model, keep=["1"]).kept[:2] == (
        ("0", "Conv3d has no binary form"),
        ("2", "ConvTranspose2d has no binary form"),
    )
    with pytest.raises(
        CannotBinarize,
        match=r"holds no nn.Conv1d, nn.Conv2d or nn.Linear .*: 0 \(Conv3d has no binary form\)",
    ):
        binarize_(nn.Sequential(nn.Conv3d(1, 4, 3)))
    swapped = binarize_(nn.Sequential(nn.Conv1d(1, 4, 3), nn.Conv1d(4, 4, 3), nn.Conv1d(4, 2, 1)))
    assert swapped.swapped == ("1",) and [name for name, _ in swapped.kept] == ["0", "2"]
    encoder = nn.TransformerEncoderLayer(8, 2, 16)
    assert ("self_attn", "MultiheadAttention has no binary form") in binarize_(encoder, keep=["linear1"]).kept


def test_binarizing_twice_leaves_binary_layers_alone() -> None:
    model = small_net()
    binarize_(model)
    with pytest.raises(CannotBinarize, match="2 .binary already"):
        binarize_(model)


@pytest.mark.parametrize("make", [small_net, Functional])
def test_a_users_model_trains_and_its_state_dict_loses_nothing(make) -> None:
    images, labels = digits()
    model = make()
    binarize_(model)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    history = []
    for step in range(30):
        batch = slice(128 * (step % 4), 128 * (step % 4 + 1))
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    assert sum(history[-4:]) < 0.6 * sum(history[:4])

    float_twin, binary_twin = make(), make()
    float_twin.load_state_dict(model.state_dict())  # a plain network opens it, no key missing or left over
    binarize_(binary_twin)
    binary_twin.load_state_dict(float_twin.state_dict())
    assert torch.equal(binary_twin.eval()(images), model.eval()(images))


def test_layers_that_see_one_sign_only_are_named() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3),
        nn.PReLU(),
        nn.Conv2d(4, 4, 3),
        nn.Flatten(),
        nn.Linear(16, 2),
    )
    binarize_(model)
    model.train()
    assert constant_inputs(model, torch.randn(4, 1, 8, 8)) == ["2"]
    assert model.training and not model[2]._forward_pre_hooks


def layer_of_transformer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    model[2].weight = model[0].weight
    return model


def normed(norm) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), norm(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 8))


CONTAINERS = {
    "encoder layer": layer_of_transformer,
    "encoder": lambda: nn.TransformerEncoder(layer_of_transformer(), 2),
    "encoder, norm first": lambda: nn.TransformerEncoderLayer(
        8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True
    ),
    "decoder layer": lambda: Twice(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)),
    "attention": lambda: nn.Sequential(Attends(), nn.Linear(8, 8)),
    "tied weights": tied,
    "weight_norm": lambda: normed(torch.nn.utils.weight_norm),
    "parametrized weight_norm": lambda: normed(torch.nn.utils.parametrizations.weight_norm),
    "spectral_norm": lambda: normed(torch.nn.utils.parametrizations.spectral_norm),
}


class Twice(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x, x)


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x)[0]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_without_gradient_a_network_computes_what_it_computes_with_it(kind) -> None:
    """torch has ways in eval and no_grad that read the weights of a layer themselves."""
    model = CONTAINERS[kind]()
    real = copy.deepcopy(model).eval() if "norm" not in kind else None
    done = binarize_(model, keep=[])
    model.eval()
    x = torch.randn(3, 5, 8)
    with torch.no_grad():
        fast = model(x)
    slow = model(x)
    torch.testing.assert_close(fast, slow.detach(), atol=1e-5, rtol=1e-5)
    if real is not None:
        assert (fast - real(x)).abs().max() > 1e-2
    names = {name for name, _ in done.kept}
    assert set(done.swapped) | names >= {n for n, m in model.named_modules() if isinstance(m, nn.Linear)}


def test_an_encoder_with_a_padding_mask_computes_the_same_too() -> None:
    model = nn.TransformerEncoder(layer_of_transformer(), 2)
    binarize_(model, keep=[])
    model.eval()
    x, padding = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        fast = model(x, src_key_padding_mask=padding)
    slow = model(x, src_key_padding_mask=padding).detach()
    torch.testing.assert_close(fast[~padding], slow[~padding], atol=1e-5, rtol=1e-5)


def test_weights_that_are_computed_stay_real_and_the_reason_is_told() -> None:
    done = binarize_(normed(torch.nn.utils.parametrizations.weight_norm), keep=["4"])
    assert ("2", "its weight is parametrized: remove_parametrizations first") in done.kept
