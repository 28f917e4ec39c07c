"""Every operator that packs gives what PyTorch gives; what does not is refused by its name and its module."""

from collections.abc import Callable

import packing_models
import pytest
import torch
from packing_models import Act, Functional, around, ops, same_as_torch
from torch import Tensor, nn
from torch.nn import functional as F

import latentbit
from latentbit.packing import CannotPack
from latentbit.packing.operators import OPERATORS

CASES: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "relu": (F.relu, "relu"),
    "relu method": (lambda x: x.relu(), "relu"),
    "relu in place": (lambda x: F.relu(x, inplace=True) + x, "relu"),
    "clamp(min=0)": (lambda x: x.clamp(min=0), "relu"),
    "hardtanh": (F.hardtanh, "hardtanh"),
    "clamp(-1, 1)": (lambda x: torch.clamp(x, -1, 1), "hardtanh"),
    "relu6": (F.relu6, "clamp"),
    "clamp(0, 6)": (lambda x: x.clamp(0, 6), "clamp"),
    "clamp_max": (lambda x: x.clamp_max(0.5), "clamp"),
    "hardtanh(-2, 2)": (lambda x: F.hardtanh(x, -2, 2), "clamp"),
    "sigmoid": (torch.sigmoid, "sigmoid"),
    "silu": (F.silu, "silu"),
    "hardsigmoid": (F.hardsigmoid, "hard_sigmoid"),
    "hardswish": (F.hardswish, "hard_swish"),
    "hardswish by hand": (lambda x: x * F.relu6(x + 3) / 6, "multiply"),
    "squeeze and excitation": (lambda x: x * x.mean((2, 3), keepdim=True).sigmoid(), "multiply"),
    "the gate first": (lambda x: torch.sigmoid(F.adaptive_avg_pool2d(x, 1)) * x, "multiply"),
    "a gate from a vector": (lambda x: x * x.mean((2, 3)).sigmoid()[:, :, None, None], "reshape"),
    "a gate by view": (lambda x: x * x.mean((2, 3)).sigmoid().view(len(x), 4, 1, 1), "reshape"),
    "x * x": (lambda x: x * x, "multiply"),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), "prelu"),
    "prelu": (lambda x: F.prelu(x, torch.tensor([0.2])), "prelu"),
    "+": (lambda x: x + F.relu(x), "add"),
    "torch.add": (lambda x: torch.add(x, F.relu(x)), "add"),
    "+=": (lambda x: x.clone().add_(F.relu(x)), "add"),
    "+ number": (lambda x: F.relu(1.5 + x), "relu"),
    "a + 2 b": (lambda x: torch.add(x, F.relu(x), alpha=2), "add"),
    "a - b": (lambda x: x - F.relu(x) * 3, "add"),
    "number - x": (lambda x: F.relu(1 - x), "relu"),
    "- number": (lambda x: F.relu(x - 0.5), "relu"),
    "* number": (lambda x: F.relu(x * -2), "relu"),
    "/ number": (lambda x: F.max_pool2d(x, 2) / 4, "affine"),
    "cat": (lambda x: torch.cat([x, F.relu(x)], dim=1), "concat"),
    "concat": (lambda x: torch.concat([x, x, x], 1), "concat"),
    "zero channels": (lambda x: F.pad(x, (0, 0, 0, 0, 3, 2)), "concat"),
    "zero channels behind": (lambda x: F.pad(x, (0, 0, 0, 0, 0, 4), mode="constant"), "concat"),
    "pad by nothing": (lambda x: F.pad(x, (0, 0, 0, 0)), "flatten"),
    "cat of one": (lambda x: torch.cat([x], 1), "flatten"),
    "dropout": (lambda x: F.dropout(x, 0.5, training=False), "flatten"),
    "if on a shape": (lambda x: F.relu(x) if x.shape[2] > 2 else x, "relu"),
    "clone": (lambda x: x.clone().contiguous(), "flatten"),
}


@pytest.mark.parametrize("case", CASES)
def test_functional_forms(case: str) -> None:
    forward, op = CASES[case]
    network = same_as_torch(around(forward), torch.randn(3, 3, 10, 10))
    assert op in ops(network)


def test_shift_per_channel_as_in_reactnet() -> None:
    model = around(lambda x: x)
    act = model[2]  # type: ignore[index]
    assert isinstance(act, Act)
    act.function = lambda x: F.prelu(x + act.shift, torch.tensor([0.25])) - act.shift
    assert ops(same_as_torch(model, torch.randn(3, 3, 10, 10)))[:4] == ["conv", "conv", "prelu", "affine"]


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (F.gelu, "aten.gelu has no counterpart in a packed network; use nn.SiLU"),
        (lambda x: F.layer_norm(x, (6, 6)), "aten.layer_norm has no counterpart.*use nn.BatchNorm2d"),
        (lambda x: x @ x, "aten.matmul has no counterpart.*attention"),
        (torch.cos, "aten.cos has no counterpart.*docs/format.md"),
        (lambda x: x.clamp(torch.zeros(1), torch.ones(1)), "bounds that are tensors"),
        (lambda x: x.clamp(1, 0), "empty"),
        (lambda x: x.softmax(1), "return its logits"),
        (lambda x: F.log_softmax(x, 1), "return its logits"),
        (torch.tanh, "aten.tanh has no counterpart"),
        (lambda x: x * x.mean(1, keepdim=True), "other than height and width"),
        (lambda x: x * F.max_pool2d(x, (1, 6)), "of .4, 6, 6. and .4, 6, 1.: shapes must be equal, or"),
        (lambda x: x / (1 + x.relu()), "by a value"),
        (lambda x: x + x.mean((2, 3), keepdim=True), "shapes must be equal"),
        (lambda x: x + torch.ones(6, 6), "one number per channel"),
        (lambda x: torch.cat([x, torch.zeros_like(x)], 1), "constant|no counterpart"),
        (lambda x: torch.cat([x, x], 2), "other than the channels"),
        (
            lambda x: F.pad(x, (1, 1, 1, 1)),
            "pads .* give the padding to the convolution or pool that follows",
        ),
        (lambda x: F.pad(x, (0, 0, 0, 0, 0, 1), value=2.0), "pads .* only zeros"),
        (lambda x: F.batch_norm(x, None, None, training=True), "statistics of the batch"),
        (lambda x: F.linear(x, torch.ones(2, 6)), "flatten it first"),
    ],
)
def test_what_can_not_be_packed_names_module_and_operator(
    forward: Callable[[Tensor], Tensor], reason: str
) -> None:
    with pytest.raises(CannotPack, match=f"^2: .*({reason})"):
        latentbit.pack(around(forward), torch.randn(1, 3, 10, 10))


def test_the_table_is_sorted_and_has_no_private_surprise() -> None:
    names = [name for name in OPERATORS if not name.startswith("<")]
    assert names == sorted(names)


def test_a_batch_norm_without_affine() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False), nn.Flatten())
    same_as_torch(packing_models.scramble_(model), torch.randn(2, 3, 6, 6))


def test_function_of_the_model_itself() -> None:
    model = Functional(lambda self, x: self.fc(F.relu(x.flatten(1))), fc=nn.Linear(12, 3)).eval()
    assert ops(same_as_torch(model, torch.randn(2, 3, 2, 2))) == ["flatten", "relu", "linear"]
