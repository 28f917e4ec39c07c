"""The seam: what holds for every file in methods/. Formulas of each are in tests/methods/."""

import functools

import pytest
import torch
from tiny_run import same, tiny_recipe, weights
from torch import nn
from torch.nn import functional as F

import latentbit
from latentbit import fields, methods
from latentbit.layers import BinaryConv2d, BinaryLinear
from latentbit.methods.parts.binarizer import BadOption, Binarizer, Deployed, NotDeployable, Unsuitable
from latentbit.models import cost
from latentbit.objective import Objective
from latentbit.recipes import Optim
from latentbit.training import optimizers
from latentbit.training.interrupt import Interrupt
from latentbit.training.train import train

ONLY_CONV = {"cbcn"}
NOT_DEPLOYABLE = {
    "cibnn": "corrections between the output channels",
}
SUMS_OF_LAYERS = {"abc_net": 25, "group_net": 5, "hwgq": 3}
"""How many binary layers one is packed as."""
IN_RARE_CASES = {("ovsw", "delta"), ("ovsw", "threshold")}
"""Options that two steps at random do not touch; the tests of their methods do."""
SGD = Optim(optimizer="sgd", lr=0.1, weight_decay=1e-4)


def small_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8),
        nn.Conv2d(8, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.PReLU(8),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Flatten(),
        nn.Linear(16 * 16, 32), nn.BatchNorm1d(32), nn.Linear(32, 10),
    )  # fmt: skip


@functools.cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images[:512], dtype=torch.float32).unsqueeze(1) / 8 - 1
    return images, torch.tensor(data.target[:512])


def test_the_folder_is_the_registry() -> None:
    assert {"sign", "bnn", "xnor", "irnet"} <= set(methods.names())
    with pytest.raises(
        methods.UnknownMethod, match=r"no method 'bi_real', did you mean 'bireal'\? Methods: ab_bnn, "
    ):
        methods.find("bi_real")
    assert methods.IRNet is methods.find("irnet")
    assert "IRNet" in dir(methods)
    with pytest.raises(AttributeError, match="has no attribute 'IRNot'"):
        methods.IRNot  # noqa: B018


def other(value: float) -> float:
    """A value that is not the default and within the bounds."""
    if isinstance(value, int):
        return 2 * value
    return value * 0.5 if abs(value) < 0.7 else value * 0.9


@pytest.mark.parametrize("name", methods.names())
def test_every_option_is_documented_and_reaches_the_layer(name) -> None:
    assert all(fields.docs(methods.find(name)).values())
    method = methods.create(name)
    assert str(method) == name
    for key, value in method.options().items():
        changed = methods.create(name, {key: other(value)})
        assert str(changed) == f"{name} ({key}={other(value)})"
        layer = BinaryConv2d.from_float(nn.Conv2d(8, 8, 3), changed)
        assert layer.binarizer is not changed and layer.binarizer.options() == changed.options()
        assert f"{key}={other(value)}" in repr(layer)


def two_steps(method: Binarizer) -> torch.Tensor:
    """Gradients and changed weights of one layer after two epochs of one step, before and after 2/3 of training."""
    torch.manual_seed(0)
    layer = BinaryConv2d.from_float(nn.Conv2d(8, 8, 3), method)
    x = torch.randn(8, 8, 5, 5, requires_grad=True)
    found = []
    for progress in (0.6, 0.8):
        layer.zero_grad()
        layer.binarizer.set_progress(progress)
        loss, penalty = layer(x).square().sum(), layer.binarizer.penalty(layer.weight)
        (loss if penalty is None else loss + penalty).backward()
        found += [p.grad.clone() for p in (x, layer.weight, *layer.binarizer.parameters())]
        layer.weight.grad *= 1e-5
        rule = layer.binarizer.optimizer([layer.weight], lr=0.1)
        (rule or torch.optim.SGD([layer.weight], lr=50)).step()
        found += [layer.weight.detach().clone(), *(b.float().clone() for b in layer.binarizer.buffers())]
    return torch.cat([v.flatten() for v in found])


@pytest.mark.parametrize("name", [name for name in methods.names() if methods.create(name).options()])
def test_every_option_changes_what_is_computed(name) -> None:
    before = two_steps(methods.create(name))
    for key, value in methods.create(name).options().items():
        if (name, key) in IN_RARE_CASES:
            continue
        assert not torch.equal(two_steps(methods.create(name, {key: other(value)})), before), key


def test_wrong_options_are_told_with_the_nearest_name_and_the_bounds() -> None:
    expected = "option t_min of method irnet: -1 is out of range, it must be at least 1e-06"
    with pytest.raises(BadOption, match=expected):
        methods.IRNet(t_min=-1)
    with pytest.raises(BadOption) as caught:
        methods.create("irnet", {"t_mim": 0.1, "t_max": "hot"})
    assert str(caught.value) == (
        "method irnet, option t_mim: method irnet has no such option, did you mean 't_min'? "
        "its options: t_min, t_max; t_max: 'hot' is not a number"
    )


def test_an_import_that_is_not_a_method_is_refused() -> None:
    with pytest.raises(
        methods.UnknownMethod, match="json:loads is not a method: it must be a subclass of lat"
    ):
        methods.create("json:loads")


def binary_net(name: str) -> nn.Sequential:
    model = small_net()
    latentbit.binarize_(model, name, keep=["0", "8", "10"] if name in ONLY_CONV else ["0", "10"])
    return model


def stirred(name: str, layer: nn.Module) -> nn.Module:
    """The layer as binary one, in the middle of its schedule and with own parameters away from where they start."""
    kind = BinaryConv2d if isinstance(layer, nn.Conv2d) else BinaryLinear
    binary = kind.from_float(layer, methods.create(name))
    binary.binarizer.set_progress(0.4)
    with torch.no_grad():
        for p in binary.binarizer.parameters():
            p.add_(0.2 * torch.rand_like(p))
    return binary


@pytest.mark.parametrize("latent", ["none", "label_aware"])
@pytest.mark.parametrize("name", methods.names())
def test_trains_with_and_without_latent_supervision(name, latent) -> None:
    images, labels = digits()
    model = binary_net(name)
    objective = Objective(model, num_classes=10, latent=latent, projection="none", latent_weight=0.01)
    optimizer = optimizers.create(objective, SGD)
    history = []
    for step in range(30):
        if step % 15 == 0:
            objective.progress(step / 30)
        batch = slice(64 * (step % 4), 64 * (step % 4 + 1))
        outcome = objective(images[batch], labels[batch])
        optimizer.zero_grad()
        outcome.loss.backward()
        optimizer.step()
        history.append(float(outcome.terms["task"]))
    assert sum(history[-4:]) < 0.6 * sum(history[:4])


@pytest.mark.parametrize("name", methods.names())
def test_state_round_trip_gives_the_same_outputs(name) -> None:
    first, second = binary_net(name), binary_net(name)
    second.load_state_dict(first.state_dict())
    x = torch.randn(4, 1, 8, 8)
    assert torch.equal(first.eval()(x), second.eval()(x))


@pytest.mark.parametrize("name", methods.names())
def test_both_views_compile_to_one_graph_for_the_whole_schedule(name) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 10))
    latentbit.binarize_(model, name)
    objective = Objective(model, num_classes=10, latent="label_aware", projection="none")
    graphs = []

    def count(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(objective, fullgraph=True, backend=count)
    images, labels = digits()
    for progress in (0.0, 0.5):
        model[1].binarizer.set_progress(progress)
        expected = objective(images[:8], labels[:8]).loss
        torch.testing.assert_close(compiled(images[:8], labels[:8]).loss, expected)
        with torch.no_grad():
            model[1].binarizer.after_step(model[1].weight, 0.1)
    assert len(graphs) == 1
    torch._dynamo.reset()


@pytest.mark.parametrize("name", sorted(set(methods.names()) - set(NOT_DEPLOYABLE)))
@pytest.mark.parametrize("padding", [0, 1])
def test_what_is_deployed_rebuilds_the_binary_view(name, padding) -> None:
    layer = stirred(name, nn.Conv2d(6, 4, 3, padding=padding)).eval()
    deployed = layer.binarizer.deploy(layer.weight.detach())
    assert set(deployed.signs.unique().tolist()) <= {-1.0, 1.0}
    x = torch.randn(2, 6, 5, 5)
    y = sum(rebuilt(part, x, padding) for part in (deployed, *deployed.plus))
    torch.testing.assert_close(layer(x), y + layer.bias.view(1, -1, 1, 1))


def rebuilt(deployed: Deployed, x: torch.Tensor, padding: int) -> torch.Tensor:
    """What the words of Deployed say, for a convolution of 3 x 3."""
    compared = x - x.mean((1, 2, 3), keepdim=True) if deployed.centred else x
    if deployed.cubic is not None:
        compared = compared - deployed.cubic.view(1, -1, 1, 1) * x.pow(3).mean((2, 3), keepdim=True)
    bits = torch.where(compared < deployed.threshold.view(1, -1, 1, 1), -1.0, 1.0)
    if deployed.real_input:
        bits = x
    if deployed.flip is not None:
        bits = torch.where(deployed.flip.view(1, -1, 1, 1), -bits, bits)
    bits = F.pad(bits, [padding] * 4, value=deployed.pad)
    if deployed.lift is not None:
        bits = torch.where(F.pad(torch.ones_like(x), [padding] * 4) > 0, bits + deployed.lift, bits)
    kernel = deployed.signs * deployed.scale.view(-1, 1, 1, 1)
    if deployed.mean is not None:
        kernel = kernel + deployed.mean.view(-1, 1, 1, 1)
    y = F.conv2d(bits, kernel)
    if deployed.windowed:
        y = y * F.avg_pool2d(F.pad(x.abs().mean(1, keepdim=True), [padding] * 4), 3, 1)
    return y if deployed.offset is None else y + deployed.offset.view(1, -1, 1, 1)


@pytest.mark.parametrize("name", sorted(NOT_DEPLOYABLE))
def test_what_can_not_be_deployed_says_why(name) -> None:
    layer = stirred(name, nn.Conv2d(6, 4, 3))
    with pytest.raises(NotDeployable, match=NOT_DEPLOYABLE[name]):
        layer.binarizer.deploy(layer.weight)


@pytest.mark.parametrize("name", methods.names())
def test_a_linear_layer_is_a_1x1_convolution_or_refused(name) -> None:
    linear, conv = nn.Linear(6, 4), nn.Conv2d(6, 4, 1)
    if name in ONLY_CONV:
        with pytest.raises(Unsuitable, match=name):
            BinaryLinear.from_float(linear, methods.create(name))
        return
    conv.weight.data, conv.bias.data = linear.weight.data.clone().view(4, 6, 1, 1), linear.bias.data.clone()
    a, b = stirred(name, linear), stirred(name, conv)
    b.binarizer.load_state_dict(
        {k: v.view_as(b.binarizer.state_dict()[k]) for k, v in a.binarizer.state_dict().items()}
    )
    x = torch.randn(3, 6)
    torch.testing.assert_close(a(x), b(x.view(3, 6, 1, 1)).flatten(1))


@pytest.mark.parametrize("name", methods.names())
def test_costs_can_be_counted_without_values(name) -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(128, 10))
        latentbit.binarize_(model, name)
    total = cost.count(model, (1, 8, 8)).total()
    n_layers, n_bits = SUMS_OF_LAYERS.get(name, 1), 0 if methods.find(name).real_input else 1
    assert total.binary_params == n_layers * 8 * 4 * 9
    assert total.bops == n_bits * n_layers * 8 * 4 * 9 * 4 * 4


@pytest.mark.parametrize("name", ["bop", "ovsw", "pcnn", "proxquant", "rbnn"])
def test_methods_with_state_resume_bit_for_bit_within_an_epoch(name, tmp_path, monkeypatch) -> None:
    chosen = tiny_recipe(tmp_path, f"method={name}", "epochs=2", "options.widths=[4, 4]", "latent=none")
    whole = train(chosen, out=tmp_path / "whole", quiet=True)
    assert whole.scores is not None
    seen = iter(range(1000))
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "name", "SIGINT", raising=False)
        patch.setattr(Interrupt, "wanted", lambda self, device: next(seen) >= 14)
        assert train(chosen, out=tmp_path / "run", quiet=True).scores is None
    train(chosen, resume=tmp_path / "run", quiet=True)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("name", methods.names())
def test_a_1d_convolution_is_a_2d_one_of_one_row_or_refused(name) -> None:
    """Values and gradients; a method that draws at random draws the same for both."""
    flat, deep = nn.Conv1d(4, 8, 3, padding=1, groups=2), nn.Conv2d(4, 8, (1, 3), padding=(0, 1), groups=2)
    deep.weight.data, deep.bias.data = flat.weight.data[:, :, None].clone(), flat.bias.data.clone()
    x = torch.randn(2, 4, 9)
    found = []
    for layer, images in ((flat, x), (deep, x[:, :, None])):
        torch.manual_seed(0)
        model = nn.Sequential(layer)
        try:
            latentbit.binarize_(model, name, keep=[])
        except Unsuitable as error:
            found.append(str(error).split("(")[0])
            continue
        y = model(images)
        y.square().sum().backward()
        found.append((y.view(2, 8, 9), model[0].weight.grad.view(8, 2, 3)))
    if isinstance(found[0], str):
        assert found[0] == found[1] and found[0].startswith(f"0: method {name}")
    else:
        torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("kernel", [3, 1])
@pytest.mark.parametrize("name", methods.names())
def test_depthwise_layers_keep_their_weights_or_are_refused_by_name(name, kernel) -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, kernel, groups=8, padding=kernel // 2), nn.Conv2d(8, 2, 6)
    )
    whole = dict(model.named_children())
    try:
        latentbit.binarize_(model, name, keep=["0", "2"])
    except Unsuitable as error:
        assert str(error).startswith(f"1: method {name} ") and "keep=" in str(error)
        assert dict(model.named_children()) == whole, "the model is as it was"
        return
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.randn(4, 1, 8, 8)).square().mean().backward()
        optimizer.step()
    assert model[1].weight.isfinite().all() and (model[1].weight != 0).any()
    x = torch.randn(1, 8, 6, 6)
    assert model[1](x).std() > 0
    with torch.no_grad():
        before = model[1](x)
        model[1].weight.neg_()
        assert not torch.equal(model[1](x), before), "W decides"
