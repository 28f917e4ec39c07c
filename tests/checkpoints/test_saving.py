import pytest
import torch
from relu_networks import relu_cnn
from safetensors.torch import load_file
from test_methods import digits, small_net

import latentbit
from latentbit import Binarizer, Objective, binarize_
from latentbit.checkpoints.checkpoint import CheckpointError
from latentbit.checkpoints.saving import CannotLoad
from latentbit.methods import IRNet, Sign


def test_a_real_network_becomes_the_one_that_was_saved(tmp_path) -> None:
    images, labels = digits()
    model = relu_cnn()
    binarize_(model, {"3": Sign(), "*": IRNet(t_min=0.1)}, activation="prelu")
    objective = Objective(model, num_classes=10)
    optimizer = torch.optim.Adam(objective.parameters(), 1e-2)
    objective(images[:32], labels[:32]).loss.backward()
    optimizer.step()
    latentbit.save(objective, tmp_path / "net.safetensors")
    again = latentbit.load(tmp_path / "net.safetensors", relu_cnn())
    assert torch.equal(again.eval()(images), model.eval()(images))
    assert again[7].binarizer.t_min == 0.1 and type(again[3].binarizer) is Sign
    assert "2.weight" in load_file(tmp_path / "net.safetensors")  # an ordinary safetensors file
    latentbit.save(again, tmp_path / "second.safetensors")
    assert load_file(tmp_path / "second.safetensors").keys() == model.state_dict().keys()


def test_a_network_that_is_binary_already_must_be_so_in_the_same_way(tmp_path) -> None:
    model, other = small_net(), small_net()
    binarize_(model)
    latentbit.save(model, tmp_path / "net.safetensors")
    binarize_(other, "bnn")
    with pytest.raises(CannotLoad, match="2 is binary by sign in the file and binary by bnn in this network"):
        latentbit.load(tmp_path / "net.safetensors", other)


def test_what_cannot_be_saved_or_loaded_says_why(tmp_path) -> None:
    with pytest.raises(CannotLoad, match="Sequential has no binary layer"):
        latentbit.save(small_net(), tmp_path / "net.safetensors")
    with pytest.raises(CheckpointError, match="does not exist"):
        latentbit.load(tmp_path / "nothing.safetensors", small_net())


class Mine(Binarizer):
    def weight(self, w: torch.Tensor) -> torch.Tensor:
        return latentbit.ops.sign_identity(w)


def test_code_that_a_file_names_is_not_imported(tmp_path) -> None:
    model, other = small_net(), small_net()
    binarize_(model, Mine())
    latentbit.save(model, tmp_path / "net.safetensors")
    with pytest.raises(CannotLoad, match=r"layer 2 is binary by .*Mine, which is code"):
        latentbit.load(tmp_path / "net.safetensors", small_net())
    binarize_(other, Mine())
    latentbit.load(tmp_path / "net.safetensors", other)
    assert torch.equal(other[2].weight, model[2].weight)
