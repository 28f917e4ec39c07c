import pkgutil

import pytest
import torch
from torch import Tensor, fx, nn

from latentbit import models
from latentbit.models.registry import UnknownNetwork, find, initialise_

SMALL = ("resnet18_compact", "resnet20", "vgg_small", "wrn22")
IMAGENET = (
    *("resnet18", "resnet18_standard", "resnet34", "resnet34_standard"),
    *("reactnet_a", "resnet18_real_to_binary", "resnet18_expert", "pokebnn"),
    *("bnext_tiny", "bnext_small", "bnext_middle", "bnext_large"),
)


def test_every_file_brings_a_network_but_those_that_serve_all() -> None:
    built = {find(name).__module__ for name in models.names()}
    files = {f"latentbit.models.{found.name}" for found in pkgutil.iter_modules(models.__path__)}
    serving = {
        "activations",
        "cost",
        "cost_tables",
        "gates",
        "registry",
        "shortcuts",
        "staged",
        "summary",
    }
    assert files - built == {f"latentbit.models.{name}" for name in serving}
    assert set(models.names()) == {*SMALL, *IMAGENET}


def test_unknown_name_and_option_say_what_there_is() -> None:
    with pytest.raises(UnknownNetwork, match=r"'resnet21', did you mean 'resnet20'\?.*vgg_small"):
        models.create("resnet21")
    with pytest.raises(
        UnknownNetwork, match="'vgg_small' has no option 'widths'; its options: dropout, final"
    ):
        models.create("vgg_small", widths=(1, 2))


def test_a_function_of_the_users_own_needs_no_mark(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lb_nets.py").write_text(
        """
from torch import nn

def strict(num_classes, in_channels, width=2):
    return nn.Linear(in_channels * width, num_classes)

def anything(**options):
    return strict(options["num_classes"], options["in_channels"], options["scale"])

def no_channels(num_classes):
    return nn.Linear(1, num_classes)
"""
    )
    assert models.create("lb_nets:strict", 7, 1, width=5).weight.shape == (7, 5)
    assert models.create("lb_nets:anything", 7, 1, scale=3).weight.shape == (7, 3)
    with pytest.raises(UnknownNetwork, match="'lb_nets:strict' has no option 'depth'; its options: width"):
        models.create("lb_nets:strict", 7, 1, depth=1)
    for name in ("lb_nets:no_channels", "lb_nets:nn"):
        with pytest.raises(
            UnknownNetwork, match=f"{name} is not a network: it must be callable as f\\(num_classes=, "
        ):
            models.create(name, 7, 1)


@pytest.mark.parametrize("name", [*SMALL, *IMAGENET])
def test_default_classes_are_those_of_the_data_set(name: str) -> None:
    with torch.device("meta"):
        model = models.create(name)
    assert model.get_submodule("fc").out_features == (1000 if name in IMAGENET else 10)


@pytest.mark.parametrize("name", [*SMALL, *IMAGENET])
@pytest.mark.parametrize("side", [8, 28, 33])
def test_classes_channels_and_sizes(name: str, side: int) -> None:
    with torch.device("meta"):
        model = models.create(name, num_classes=7, in_channels=1)
        assert model(torch.empty(2, 1, side, side)).shape == (2, 7)


@pytest.mark.parametrize("name", [*SMALL, "resnet18", "resnet18_standard"])
def test_head_of_features_is_forward_and_the_classifier_sees_vectors(name: str) -> None:
    model = models.create(name, num_classes=5).eval()
    seen: list[Tensor] = []
    classifier = model.get_submodule("fc")
    classifier.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = model(x)
        features = model.forward_features(x)
        assert torch.equal(model.forward_head(features), logits)
    assert seen[0].dim() == 2 and torch.equal(seen[0], seen[1])


@pytest.mark.parametrize("name", [*SMALL, "resnet18", "resnet18_standard"])
def test_fx_traces_and_gradient_reaches_every_parameter(name: str) -> None:
    torch.manual_seed(0)
    model = models.create(name, num_classes=5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            # The residual stream starts out positive, where a PReLU's slope has no gradient.
            nn.init.normal_(module.bias, std=4)
    traced = fx.symbolic_trace(model.eval())
    x = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(traced(x), model(x))
    nn.functional.cross_entropy(model.train()(x), torch.tensor([0, 1, 2, 3])).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, key


@pytest.mark.parametrize("name", [*SMALL, "resnet18", "resnet18_standard"])
def test_compiles_to_one_graph(name: str) -> None:
    model = models.create(name, num_classes=5).eval()
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))


def test_initialise_is_he_fan_out() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(64, 128, 3), nn.Linear(512, 512))
    initialise_(net)
    conv, linear = net[0], net[1]
    assert isinstance(conv, nn.Conv2d) and isinstance(linear, nn.Linear)
    assert conv.weight.std().item() == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.02)
    assert linear.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert not linear.bias.any()
