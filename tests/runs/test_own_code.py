"""Files of the user's own in a run: copied with what they import, found where the run is, told when they change."""

import shutil
from pathlib import Path

import pytest

from latentbit import recipes
from latentbit.errors import LatentbitWarning
from latentbit.imports import trusting
from latentbit.runs import RunDirectory, RunError, changed_keys
from latentbit.runs.own_code import CannotKeep
from latentbit.training.train import train

NET = """
from lb_width import WIDTH
from torch import nn
def net(num_classes, in_channels):
    return nn.Sequential(nn.Conv2d(in_channels, WIDTH, 3), nn.BatchNorm2d(WIDTH), nn.Conv2d(WIDTH, WIDTH, 3),
                         nn.BatchNorm2d(WIDTH), nn.Flatten(), nn.Linear(16 * WIDTH, num_classes))
"""


def files(folder: Path, width: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lb_net.py").write_text(NET)
    (folder / "lb_width.py").write_text(f"WIDTH = {width}\n")
    return folder / "lb_net.py"


def chosen(file: Path, *changes: str) -> recipes.Recipe:
    keys = [f"network={file}:net", "model.options={}", "epochs=1", "compile=off", "batch_size=512", *changes]
    return recipes.load("digits_resnet18_compact_baseline", keys)


def test_a_run_keeps_the_file_and_what_it_imports_and_can_be_moved(tmp_path: Path) -> None:
    file = files(tmp_path / "mine")
    run, _ = train(chosen(file), out=tmp_path / "run", quiet=True)
    shutil.rmtree(tmp_path / "mine")
    moved = RunDirectory.open(run.path.rename(tmp_path / "moved"))
    assert sorted(path.name for path in (moved.path / "code").iterdir()) == ["lb_net.py", "lb_width.py"]
    with trusting():
        assert moved.network()[0].out_channels == 4  # type: ignore[index]
        train(moved.recipe(), resume=moved.path, quiet=True)  # the checkpoint is of the same recipe
    assert not changed_keys(chosen(file), moved.recipe())


def test_two_runs_have_modules_of_one_name(tmp_path: Path) -> None:
    made = [
        train(chosen(files(tmp_path / str(width), width)), out=tmp_path / f"run{width}", quiet=True).run
        for width in (4, 8)
    ]
    with trusting():
        assert [run.network()[0].out_channels for run in made] == [4, 8]  # type: ignore[index]


def test_an_edited_copy_is_told_and_not_resumed(tmp_path: Path) -> None:
    run, _ = train(chosen(files(tmp_path / "mine")), out=tmp_path / "run", quiet=True)
    copy = run.path / "code" / "lb_net.py"
    copy.write_text(copy.read_text() + "# edited\n")
    with trusting():
        with pytest.warns(LatentbitWarning, match="code/lb_net.py of .*run changed since the run began"):
            run.network()
        with pytest.raises(
            RunError, match="code/lb_net.py of .* changed since the run began.*--accept-changes"
        ):
            train(run.recipe(), resume=run.path, quiet=True)
        with pytest.warns(LatentbitWarning):
            assert train(run.recipe(), resume=run.path, accept_changes=True, quiet=True).scores is not None


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "lb_net.py").write_text(
        "def agree(z_b, z_w, labels):\n    return (z_b - z_w).square().mean()\n"
    )
    both = chosen(files(tmp_path / "mine"), f"latent={tmp_path}/a/lb_net.py:agree")
    with pytest.raises(CannotKeep, match="two different files are called code/lb_net.py"):
        train(both, out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "recipe.toml").exists()
