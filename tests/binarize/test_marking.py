import copy

import pytest
import torch
from test_methods import small_net
from torch import nn

import latentbit
from latentbit import Objective, TwoView, binarize_, mark_
from latentbit.binarize.marking import NotBinary


def binary(method="sign") -> nn.Module:
    model = small_net()
    binarize_(model, method)
    return model


def marked() -> nn.Module:
    model = binary()
    mark_(model)
    return model


def test_a_real_network_refuses_the_marked_state_of_a_binary_one(tmp_path) -> None:
    torch.save(marked().state_dict(), tmp_path / "net.pt")
    state = torch.load(tmp_path / "net.pt", weights_only=True)
    with pytest.raises(RuntimeError, match="this_is_a_binary_network__load_it_after_latentbit_binarize_"):
        small_net().load_state_dict(state)
    twin = binary()
    twin.load_state_dict(state)
    assert torch.equal(twin[2].weight, state["2.weight"])


def test_it_does_so_as_a_part_of_a_larger_one() -> None:
    whole = nn.ModuleDict({"body": marked(), "head": nn.Linear(10, 2)})
    with pytest.raises(RuntimeError, match="body.this_is_a_binary_network"):
        nn.ModuleDict({"body": small_net(), "head": nn.Linear(10, 2)}).load_state_dict(whole.state_dict())
    copy.deepcopy(whole).load_state_dict(whole.state_dict())


def test_without_the_mark_keys_are_those_of_the_real_network_and_only_binary_ones_are_marked() -> None:
    assert binary().state_dict().keys() == small_net().state_dict().keys()
    with pytest.raises(NotBinary, match="Sequential has no binary layer"):
        mark_(small_net())


def test_another_method_or_other_layers_are_named(tmp_path) -> None:
    with pytest.raises(
        RuntimeError, match="2 is binary by sign in the file and binary by bnn in this network"
    ):
        binary("bnn").load_state_dict(binary().state_dict())
    few = small_net()
    binarize_(few, only=["5"])
    with pytest.raises(RuntimeError, match="2 is binary by sign in the file and real in this network"):
        few.load_state_dict(binary().state_dict())
    torch.save(binary().state_dict(), tmp_path / "net.pt")  # with pickle, too
    with pytest.raises(RuntimeError, match="2 is binary by sign in the file"):
        few.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))


def test_a_real_state_is_a_fine_beginning() -> None:
    real, model = small_net(), binary()
    model.load_state_dict(real.state_dict())
    assert torch.equal(model[2].weight, real[2].weight)


@pytest.mark.parametrize("wrap", [TwoView, lambda model: Objective(model, num_classes=10)])
def test_both_views_save_and_load(wrap) -> None:
    first, second = wrap(binary()), wrap(binary())
    second.load_state_dict(first.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


class Config:
    """As far as transformers' PreTrainedConfig matters here."""

    def to_dict(self) -> dict:
        return dict(vars(self))


class Pretrained(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))

    def save_pretrained(self, folder: str) -> None: ...


def test_the_config_of_transformers_says_binary_and_that_of_a_real_twin_does_not() -> None:
    config = Config()
    real, binary = Pretrained(config), Pretrained(config)
    latentbit.binarize_(binary)
    said = binary.config.to_dict()["quantization_config"]
    assert said["layers"] == ["body.1"] and "latentbit.load" in said["latentbit"]
    assert "quant_method" not in said, "with one that it does not know, from_pretrained would go on"
    assert real.config is config and "quantization_config" not in config.to_dict()


def test_from_pretrained_refuses_a_binary_network(tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    from strangers_networks import transformers_resnet

    model = transformers_resnet()
    real = type(model)(model.config)
    latentbit.binarize_(model)
    model.save_pretrained(tmp_path / "binary")
    with pytest.raises(ValueError, match="quantization config"):
        transformers.ResNetForImageClassification.from_pretrained(tmp_path / "binary")
    real.save_pretrained(tmp_path / "real")
    transformers.ResNetForImageClassification.from_pretrained(tmp_path / "real")
    # The way that is documented.
    latentbit.save(model, tmp_path / "net.safetensors")
    again = latentbit.load(tmp_path / "net.safetensors", type(model)(model.config))
    images = torch.randn(2, 1, 8, 8)
    assert torch.equal(again.eval()(images).logits, model.eval()(images).logits)
