"""Code that a file names runs only if the user says so: every command that opens a run or a recipe."""

import shutil
from pathlib import Path

import pytest
import run_directory
from typer.testing import CliRunner

from latentbit import imports, recipes, runs
from latentbit.cli import app
from latentbit.imports import CodeNotTrusted

HOSTILE = """
from pathlib import Path
Path({marker!r}).touch()
from latentbit.models import create
from latentbit.methods import Sign as method
def network(num_classes, in_channels):
    return create("resnet18_compact", num_classes=num_classes, in_channels=in_channels, widths=[4, 8])
def data():
    import torch, latentbit
    images = torch.zeros(200, 1, 8, 8, dtype=torch.uint8)
    labelled = torch.utils.data.TensorDataset(images, torch.arange(200) % 10)
    return latentbit.OwnData(labelled, labelled, classes=10, mean=[0.3], std=[0.4])
def loss(z_b, z_w, labels):
    return (z_b - z_w).square().mean()
"""
KEYS = {
    "network": ('network = "resnet18_compact"', 'network = "code/evil.py:network"'),
    "dataset": ('dataset = "digits"', 'dataset = "code/evil.py:data"'),
    "method": ('name = "sign"', 'name = "code/evil.py:method"'),
    "loss": ('latent = "label_aware"', 'latent = "code/evil.py:loss"'),
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_directory.make(tmp_path_factory.mktemp("runs") / "clean", "epochs=1", "compile=off")


def hostile(clean: Path, folder: Path, key: str) -> tuple[Path, Path]:
    """A copy of a run whose recipe names a file beside it, and the marker which that file leaves when it is run."""
    run, marker = folder / "run", folder / "it-ran"
    shutil.copytree(clean, run)
    (run / "code").mkdir()
    (run / "code" / "evil.py").write_text(HOSTILE.format(marker=str(marker)))
    text = (run / "recipe.toml").read_text()
    assert KEYS[key][0] in text
    text = text.replace(*KEYS[key])
    if key == "network":
        text = text.replace('options = {"widths" = [4, 8]}', "options = {}")
    (run / "recipe.toml").write_text(text)
    return run, marker


COMMANDS = (
    "pack RUN",
    "eval RUN",
    "cost RUN",
    "analyze RUN --samples 20",
    "report RUN --samples 20",
    "train --resume RUN",
    "train RUN/recipe.toml",
    "train RUN/recipe.toml --dry-run",
    "train digits_resnet18_compact_baseline teacher=RUN",
    "compare --recipe RUN/recipe.toml --methods sign",
)
READERS = ("info RUN", "recipes show RUN/recipe.toml", "recipes show RUN/recipe.toml --full", "run RUN x.png")

NEEDED = {
    "network": COMMANDS,
    "dataset": [c for c in COMMANDS if not c.startswith(("cost", "train digits"))],
    "method": [c for c in COMMANDS if not c.startswith("compare")],  # whose methods are typed
    "loss": [c for c in COMMANDS if c.startswith("train") and "teacher" not in c],
}


def invoke(command: str, run: Path) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(app, command.replace("RUN", str(run)).split())
    return result.exit_code, result.output, result.exception


@pytest.mark.parametrize("key", KEYS)
def test_no_command_runs_the_code_of_a_run(
    key: str, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, marker = hostile(clean, tmp_path, key)
    for command in NEEDED[key]:
        _, said, error = invoke(command, run)
        assert isinstance(error, CodeNotTrusted), f"{command}: {said} {error!r}"
        assert str(run / "recipe.toml") in str(error) and str(run / "code" / "evil.py") in str(error)
        assert KEYS[key][1].split('"')[1] in str(error) and "--trust-code" in str(error)
        assert not marker.exists(), command
    for command in READERS:
        _, said, error = invoke(command, run)
        assert not isinstance(error, CodeNotTrusted) and not marker.exists(), f"{command}: {said}"
    assert list((run / "code").iterdir()) == [run / "code" / "evil.py"]
    assert invoke("info RUN", run)[0] == 0


def test_it_runs_when_it_is_trusted_and_only_in_that_command(clean: Path, tmp_path: Path) -> None:
    run, marker = hostile(clean, tmp_path, "network")
    status, said, _ = invoke("cost RUN --trust-code", run)
    assert status == 0 and "BOPs" in said and marker.exists()
    assert not imports.is_trusting()
    assert isinstance(invoke("cost RUN", run)[2], CodeNotTrusted)


def test_what_is_typed_runs(clean: Path, tmp_path: Path) -> None:
    run, marker = hostile(clean, tmp_path, "network")
    status, said, _ = invoke("cost RUN/code/evil.py:network --channels 1 --input 8", run)
    assert status == 0 and marker.exists(), said


def test_among_several_runs_it_is_left_out_with_a_note(clean: Path, tmp_path: Path) -> None:
    run, _ = hostile(clean, tmp_path, "method")
    found, notes = runs.usable([clean, run])
    assert found == [clean]
    assert notes == [f"skipping {run}: its recipe names code; if you trust it, add --trust-code"]
    with imports.trusting():
        assert runs.usable([clean, run]) == ([clean, run], [])


def test_a_typed_name_replaces_one_that_was_read(clean: Path, tmp_path: Path) -> None:
    run, _ = hostile(clean, tmp_path, "network")
    typed = recipes.load(str(run / "recipe.toml"), [f"network={run}/code/evil.py:network"])
    assert not isinstance(typed.model.network, imports.Unvouched)


def test_python_is_asked_too(clean: Path, tmp_path: Path) -> None:
    run, marker = hostile(clean, tmp_path, "method")
    with pytest.raises(CodeNotTrusted):
        runs.open(run).network()
    assert not marker.exists()
    with imports.trusting():
        assert runs.open(run).network() is not None


def test_a_recipe_that_another_extends_is_asked_for(clean: Path, tmp_path: Path) -> None:
    run, _ = hostile(clean, tmp_path, "network")
    (tmp_path / "innocent.toml").write_text('extends = "run/recipe"\n')
    with pytest.raises(CodeNotTrusted, match="code/evil.py"):
        from latentbit.recipes.build import build_model

        build_model(recipes.load(str(tmp_path / "innocent.toml")), 10, 1)
