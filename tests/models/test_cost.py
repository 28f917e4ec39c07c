import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import binarize_, models, views
from latentbit.models import cost
from latentbit.models.cost import CannotRun, Cost


def counted(name: str, side: int = 224, **options: object) -> Cost:
    with torch.device("meta"):
        model = models.create(name, **options)
        binarize_(model)
    return cost.count(model, (3, side, side))


def stage_products(depths: tuple[int, ...]) -> int:
    """Multiply-adds of the 3x3 convolutions of an ImageNet ResNet at 224, by hand."""
    total, before = 0, 64
    for width, side, depth in zip((64, 128, 256, 512), (56, 28, 14, 7), depths, strict=True):
        total += 9 * before * width * side**2 + (depth - 1) * 9 * width**2 * side**2
        before = width
    return total


CASES = [("resnet18", (4, 4, 4, 4), 1.676), ("resnet34", (6, 8, 12, 6), 3.526)]


@pytest.mark.parametrize(("name", "depths", "printed"), CASES)
def test_operations_of_the_imagenet_networks(name: str, depths: tuple[int, ...], printed: float) -> None:
    total = counted(name).total()
    assert total.bops == stage_products(depths)
    assert round(total.bops / 1e9, 3) == printed
    assert total.macs == 147 * 64 * 112**2 + 512 * 1000
    assert round(total.macs / 1e8, 3) == 1.185


@pytest.mark.parametrize(("name", "depths", "printed"), CASES)
def test_elementwise_work_by_kind(name: str, depths: tuple[int, ...], printed: float) -> None:
    network = counted(name)
    maps = list(zip((64, 128, 256, 512), (56, 28, 14, 7), depths, strict=True))
    outputs = sum(width * side**2 * depth for width, side, depth in maps)
    first_inputs = 64 * 56**2 + 64 * 56**2 + 128 * 28**2 + 256 * 14**2
    inputs = first_inputs + sum(width * side**2 * (depth - 1) for width, side, depth in maps)
    by_kind = {kind: network.total(kind).elementwise for kind in network.kinds()}
    assert by_kind["add"] == by_kind["prelu"] == outputs
    assert by_kind["batch norm"] == inputs + outputs + 64 * 112**2
    assert by_kind["sign"] == inputs
    shortcuts = 4 * (64 * 28**2 + 128 * 14**2 + 256 * 7**2)
    assert by_kind["pool"] == 9 * 64 * 56**2 + shortcuts + 512 * 7**2
    assert network.total().elementwise == sum(by_kind.values())


@pytest.mark.parametrize(
    ("name", "binary", "channels", "mbit"),
    [("resnet18", 10_985_472, 3840, 28.2), ("resnet34", 21_086_208, 7552, 39.0)],
)
def test_memory_and_its_breakdown(name: str, binary: int, channels: int, mbit: float) -> None:
    network = counted(name)
    parts = {kind: network.total(kind).n_bits for kind in network.kinds() if network.total(kind).n_bits}
    assert parts == {
        "conv": 32 * 147 * 64,
        "linear": 32 * 513 * 1000,
        "binary conv": binary,
        "batch norm": 32 * 2 * (64 + (64 - 512 + channels) + channels),  # of stem, inputs, outputs
        "prelu": 32 * channels,
    }
    assert network.mbit == sum(parts.values()) / 1e6 == pytest.approx(mbit, abs=0.1)
    assert network.folded_scales == channels
    total = network.total()
    assert network.float_mbit == 32 * (total.binary_params + total.real_params) / 1e6


@pytest.mark.parametrize(("name", "mbit"), [("resnet18", 33.5), ("resnet34", 43.8)])
def test_memory_with_real_shortcuts(name: str, mbit: float) -> None:
    assert counted(name, shortcut="conv", norm="after").mbit == pytest.approx(mbit, abs=0.3)


class Functional(nn.Module):
    """Everything but the weights is a function call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)
        self.hidden = nn.Linear(8 * 16, 6, bias=False)
        self.last = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        x = F.max_pool2d(x + self.grouped(x), 2)
        return self.last(self.hidden(x.flatten(1)))


def test_functional_calls_groups_and_scales_without_batch_norm() -> None:
    model = Functional()
    binarize_(model)
    network = cost.count(model, (3, 8, 8))
    total = network.total()
    assert total.macs == 27 * 8 * 64 + 6 * 2
    assert total.bops == 9 * 2 * 8 * 64 + 8 * 16 * 6
    assert total.binary_params == 8 * 2 * 9 + 8 * 16 * 6
    assert network.total("relu").elementwise == network.total("add").elementwise == 8 * 64
    assert network.total("pool").elementwise == 4 * 8 * 16
    assert network.total("scale").real_params == 8 + 6
    assert network.total("scale").elementwise == 8 * 64 + 6
    assert network.folded_scales == 0
    assert network.float_mbit == 32 * sum(p.numel() for p in model.parameters()) / 1e6


def test_scale_folds_through_a_max_pool() -> None:
    network = counted("vgg_small", 32)
    assert network.folded_scales == 128 + 256 + 256 + 512 + 512
    assert "scale" not in network.kinds()


def test_learned_scales_of_a_method_count_once() -> None:
    model = models.create("resnet20")
    binarize_(model, "xnor_pp")
    assert cost.count(model, (3, 32, 32)).mbit == pytest.approx(counted("resnet20", 32).mbit)


def test_real_network_and_latent_view_have_no_binary_work() -> None:
    model = models.create("resnet20")
    real = cost.count(model, (3, 32, 32))
    assert real.total().bops == real.total().binary_params == 0
    assert real.mbit == real.float_mbit == 32 * sum(p.numel() for p in model.parameters()) / 1e6
    binarize_(model)
    binary, latent = (cost.count(m, (3, 32, 32)).total() for m in (model, views.latent_view(model)))
    assert latent.macs == real.total().macs == binary.macs + binary.bops
    assert latent.bops == 0


def test_the_model_is_left_as_it_was() -> None:
    model = models.create("resnet20")
    binarize_(model)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    cost.count(model, (3, 32, 32))
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


class Looks(nn.Module):
    """Branches on a value, which only a real run has."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) if x.sum().item() == 0 else x


def test_model_that_looks_at_values_is_run_for_real() -> None:
    assert cost.count(Looks(), (4,)).total().macs == 12


def test_wrong_input_is_one_line() -> None:
    with pytest.raises(CannotRun, match=r"VGGSmall cannot run an input of \(1, 32, 32\)"):
        cost.count(models.create("vgg_small"), (1, 32, 32))


def test_as_dict_sums_up() -> None:
    report = counted("resnet18_compact", 32).as_dict()
    for amount, value in report["total"].items():
        assert value == sum(layer[amount] for layer in report["layers"])
        assert value == sum(kind[amount] for kind in report["by_kind"].values())
    assert report["ratio"] == report["float_mbit"] / report["mbit"]


@pytest.mark.parametrize(
    ("method", "kind", "per_value", "params"),
    [("rbnn", "mean of sample", 2, 0), ("insta", "mean cube", 4, 4)],
)
def test_thresholds_that_move_with_the_sample_cost_work_per_value(method, kind, per_value, params) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(128, 10))
    binarize_(model, method)
    (row,) = [row for row in cost.count(model, (1, 8, 8)).layers if row.kind == kind]
    assert (row.name, row.elementwise, row.real_params) == ("1", per_value * 4 * 6 * 6, params)
