import json
import struct

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from views.test_two_view import binary_net

from latentbit.checkpoints import checkpoint
from latentbit.checkpoints.checkpoint import CheckpointError, Position
from latentbit.objective import Objective


def trained(latent: str = "label_aware") -> tuple[Objective, torch.optim.Optimizer]:
    objective = Objective(binary_net(), num_classes=10, latent=latent, dim=4)
    optimizer = torch.optim.Adam(objective.parameters(), 0.01)
    objective(torch.randn(8, 1, 8, 8), torch.arange(8)).loss.backward()
    optimizer.step()
    return objective, optimizer


def test_objective_and_optimizer_come_back_bit_for_bit(tmp_path) -> None:
    objective, optimizer = trained()
    position = Position(3, 7, 0.5, {"loss": 0.1 + 0.2})
    mask = {"mask": torch.tensor([True, False])}
    path = checkpoint.write(tmp_path, position, objective, optimizer, mask, "seed = 1")
    other, other_optimizer = trained()
    again, extra, recipe = checkpoint.read(path, other, other_optimizer)
    assert again == position and extra["mask"].tolist() == [True, False] and recipe == "seed = 1"
    for key, value in objective.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)
    mine, theirs = optimizer.state_dict(), other_optimizer.state_dict()
    for index, state in mine["state"].items():
        for key, value in state.items():
            assert torch.equal(theirs["state"][index][key], value)
    other.network.check_shared()


def test_shared_parameters_are_stored_once() -> None:
    objective, _ = trained()
    keys = checkpoint.own_state(objective).keys()
    assert "network.binary.2.weight" in keys and "network.latent.2.weight" not in keys
    assert "network.latent.3.running_mean" in keys and "projection.linear.weight" in keys


def test_two_are_kept(tmp_path) -> None:
    objective, optimizer = trained()
    for epoch in range(4):
        checkpoint.write(tmp_path, Position(epoch), objective, optimizer, {})
    assert [p.name for p in checkpoint.listed(tmp_path)] == [
        "00003-000000.safetensors",
        "00002-000000.safetensors",
    ]


def test_truncated_damaged_and_foreign_files_are_refused_by_name(tmp_path) -> None:
    objective, optimizer = trained()
    path = checkpoint.write(tmp_path, Position(1), objective, optimizer, {})
    whole = path.read_bytes()
    for broken in (whole[:-1], whole[: len(whole) // 2], b"", b"not a checkpoint", b"\xff" * 100):
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match=f"{path.name} is truncated or not a safetensors file"):
            checkpoint.read(path, objective, optimizer)
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoint.read(path, objective, optimizer)
    path.write_bytes(whole)
    other, other_optimizer = trained("none")
    with pytest.raises(CheckpointError, match="belongs to another network or recipe"):
        checkpoint.read(path, other, other_optimizer)
    model = tmp_path / "model.safetensors"
    checkpoint.write_model(model, objective.model, {})
    with pytest.raises(CheckpointError, match="is not a training checkpoint"):
        checkpoint.read(model, objective, optimizer)
    with pytest.raises(CheckpointError, match="does not exist"):
        checkpoint.read(tmp_path / "none", objective, optimizer)


@pytest.mark.parametrize("edit", ["epoch", "digest", "format"])
def test_an_edited_number_is_found_out(tmp_path, edit) -> None:
    """The digest covers all that a checkpoint holds, not only its tensors."""
    objective, optimizer = trained()
    path = checkpoint.write(tmp_path, Position(6), objective, optimizer, {})
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if edit == "epoch":
        metadata["facts"] = metadata["facts"].replace('"epoch": 6', '"epoch": 2')
    elif edit == "digest":
        del metadata["digest"]
    else:
        metadata["format"] = "latentbit-checkpoint-1"
    save_file(tensors, path, metadata)
    with pytest.raises(CheckpointError, match="is damaged or was edited"):
        checkpoint.read(path, objective, optimizer)


def test_the_newest_whole_one_is_found(tmp_path) -> None:
    objective, optimizer = trained()
    first = checkpoint.write(tmp_path, Position(1), objective, optimizer, {})
    second = checkpoint.write(tmp_path, Position(2), objective, optimizer, {})
    second.write_bytes(second.read_bytes()[:100])
    path, broken = checkpoint.newest_whole(tmp_path)
    assert path == first and len(broken) == 1 and second.name in broken[0]
    assert checkpoint.newest_whole(tmp_path / "empty") == (None, [])


def test_a_model_file_is_a_plain_state_dict(tmp_path) -> None:
    path = tmp_path / "best.safetensors"
    model = binary_net()
    checkpoint.write_model(path, model, {"epoch": 3})
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    assert set(json.loads(raw[8 : 8 + size])) - {"__metadata__"} == set(model.state_dict())
    other = binary_net()
    assert checkpoint.read_model(path, other) == {"epoch": 3}
    assert torch.equal(other[2].weight, model[2].weight)
    with pytest.raises(CheckpointError, match="does not fit Linear"):
        checkpoint.read_model(path, torch.nn.Linear(2, 2))


def test_a_fingerprint_tells_files_apart(tmp_path) -> None:
    first, second, broken = (tmp_path / f"{name}.safetensors" for name in ("first", "second", "broken"))
    checkpoint.write_model(first, binary_net(), {"epoch": 1})
    checkpoint.write_model(second, binary_net(), {"epoch": 1})
    assert checkpoint.fingerprint(first) == checkpoint.fingerprint(first) != checkpoint.fingerprint(second)
    broken.write_bytes(first.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="broken.safetensors cannot be read"):
        checkpoint.fingerprint(broken)
