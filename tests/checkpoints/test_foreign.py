"""`resnet18_standard` has the names of torchvision and timm, so its state dict stands for one of theirs."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from latentbit import models
from latentbit.checkpoints import foreign
from latentbit.checkpoints.checkpoint import CheckpointError


def theirs() -> dict[str, torch.Tensor]:
    """Small, but with the names: shapes of a ResNet-18 would take 45 MB."""
    found, before = {"conv1.weight": torch.randn(4, 3, 7, 7), **norm("bn1", 4)}, 4
    for layer, width in enumerate((4, 8), 1):
        for block in range(2):
            for conv in (1, 2):
                first = block == 0 and conv == 1
                name = f"layer{layer}.{block}"
                found[f"{name}.conv{conv}.weight"] = torch.randn(width, before if first else width, 3, 3)
                found |= norm(f"{name}.bn{conv}", width)
            if block == 0 and before != width:
                found[f"{name}.downsample.0.weight"] = torch.randn(width, before, 1, 1)
                found |= norm(f"{name}.downsample.1", width)
        before = width
    return found | {"fc.weight": torch.randn(1000, 8), "fc.bias": torch.randn(1000)}


def norm(name: str, width: int) -> dict[str, torch.Tensor]:
    own = {f"{name}.{key}": torch.randn(width) for key in ("weight", "bias", "running_mean", "running_var")}
    return own | {f"{name}.num_batches_tracked": torch.tensor(7)}


def ours(shortcut: str = "conv") -> nn.Module:
    from latentbit.models.resnet import ResNet, imagenet_stem

    return ResNet(imagenet_stem, 3, (4, 8), (4, 4), 10, shortcut=shortcut, norm="after")


def test_basic_blocks_of_torchvision_become_two_of_ours() -> None:
    network, given = ours(), theirs()
    match = foreign.take_(network, given, Path("resnet.pth"))
    own = network.state_dict()
    for name, source in {
        "stem.conv.weight": "conv1.weight",
        "stem.norm.running_var": "bn1.running_var",
        "stages.0.0.conv.weight": "layer1.0.conv1.weight",
        "stages.0.1.norm.weight": "layer1.0.bn2.weight",
        "stages.0.3.conv.weight": "layer1.1.conv2.weight",
        "stages.1.0.shortcut.conv.weight": "layer2.0.downsample.0.weight",
        "stages.1.0.shortcut.norm.bias": "layer2.0.downsample.1.bias",
        "stages.1.2.norm.running_mean": "layer2.1.bn1.running_mean",
    }.items():
        assert torch.equal(own[name], given[source]), name
    assert match.share == 1.0 and match.unused == ()
    assert "fc.weight (10 x 8, 1000 x 8 there)" in match.fresh
    assert {re.sub(r"\d", "", name.split(" ")[0]) for name in match.fresh} == {
        "fc.weight",
        "fc.bias",
        "stages...act.weight",
    }


def test_what_the_network_has_no_place_for_is_told() -> None:
    match = foreign.take_(ours("pool"), theirs(), Path("resnet.pth"))
    assert match.share == 1.0 and "layer2.0.downsample.0.weight" in match.unused
    assert match.lines()[0] == "start: 54 tensors of resnet.pth, 100.0% of the weights"
    assert match.lines()[1].startswith("  fresh: stages.0.0.act.weight,") and " more" in match.lines()[1]


def test_the_same_names_need_no_map() -> None:
    network = models.create("resnet18_compact", widths=[4, 8])
    given = models.create("resnet18_compact", widths=[4, 8]).state_dict()
    match = foreign.take_(network, given, Path("mine.safetensors"))
    assert match.fresh == match.unused == ()
    assert all(torch.equal(value, given[name]) for name, value in network.state_dict().items())


def test_too_little_is_refused_and_nothing_is_changed() -> None:
    network = ours()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    half = {name: value for name, value in theirs().items() if not name.startswith("layer2")}
    with pytest.raises(
        CheckpointError, match=r"half.pth fits ResNet too little: \d+% of the weights, 80% are"
    ):
        foreign.take_(network, half, Path("half.pth"))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize(
    "wrapped", [lambda s: s, lambda s: {"epoch": 3, "state_dict": s}, lambda s: {"model": s}]
)
def test_files_of_torch_and_safetensors_are_read_without_their_wrappers(tmp_path, wrapped) -> None:
    given = {"conv1.weight": torch.randn(2, 3), "fc.bias": torch.randn(2)}
    in_parallel = {f"module.{name}": value for name, value in given.items()}
    torch.save(wrapped(in_parallel), tmp_path / "net.pth")
    save_file(in_parallel, tmp_path / "net.safetensors")
    for name in ("net.pth", "net.safetensors"):
        found = foreign.read(tmp_path / name)
        assert found.keys() == given.keys()
        assert all(torch.equal(found[key], given[key]) for key in given)


def test_files_that_cannot_be_used_are_named(tmp_path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "module.pth")
    with pytest.raises(
        CheckpointError, match=r"module.pth holds more than tensors, .*torch.save\(model.state_dict"
    ):
        foreign.read(tmp_path / "module.pth")
    torch.save({"epoch": 3, "acc": 0.5}, tmp_path / "numbers.pth")
    with pytest.raises(CheckpointError, match=r"numbers.pth holds no tensors by name \(it has epoch, acc\)"):
        foreign.read(tmp_path / "numbers.pth")
    torch.save(torch.zeros(2), tmp_path / "tensor.pth")
    with pytest.raises(CheckpointError, match="holds a Tensor, not a state dict"):
        foreign.read(tmp_path / "tensor.pth")
    (tmp_path / "cut.pth").write_bytes((tmp_path / "tensor.pth").read_bytes()[:100])
    for name in ("cut.pth", "cut.safetensors"):
        (tmp_path / "cut.safetensors").write_bytes(b"nothing")
        with pytest.raises(CheckpointError, match="is truncated or not a"):
            foreign.read(tmp_path / name)
