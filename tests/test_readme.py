"""What the README and the pages of its three paths show is run: Python as it stands, commands in one folder.

Commands that train, time or analyse for long get fewer epochs, seconds or images: SHORTENED has every change.
CIFAR-10 is a random one of 130 training images, so that nothing is downloaded.
"""

import dataclasses
import glob
import hashlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from data import cifar_files
from PIL import Image
from typer.testing import CliRunner

from latentbit import recipes
from latentbit.cli import app
from latentbit.data import cifar, digits

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PATHS = [
    (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("model", "research", "deploy")
]
SMALL = "model.options={widths=[4,8]} compile=off"
"""For commands that do not need the whole network to show what they do."""
MY_NET = """
from torch import nn
def make_net(num_classes: int, in_channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(in_channels, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
                         nn.Flatten(), nn.Linear(128, num_classes))
"""

SHORTENED = {
    "latentbit demo": "latentbit demo --epochs 1",
    "latentbit train digits_resnet18_compact epochs=3 --out runs/first": (
        f"latentbit train digits_resnet18_compact epochs=1 {SMALL} --out runs/first"
    ),
    "latentbit train digits_resnet18_compact seed=0,1,2 --out runs/seeds": (
        f"latentbit train digits_resnet18_compact seed=0,1 epochs=1 {SMALL} --out runs/seeds"
    ),
    "latentbit train digits_resnet18_compact schedule=constant epochs=2 --out runs/constant": (
        f"latentbit train digits_resnet18_compact schedule=constant epochs=1 {SMALL} --out runs/constant"
    ),
    "latentbit train --resume runs/constant --extend epochs=3": (
        "latentbit train --resume runs/constant --extend epochs=2"
    ),
    "latentbit train cifar10_resnet18_compact epochs=2 --dry-run": (
        f"latentbit train cifar10_resnet18_compact epochs=2 batch_size=16 {SMALL} --dry-run"
    ),
    "latentbit train digits_resnet18_compact_fp32 epochs=2 --out runs/real": (
        f"latentbit train digits_resnet18_compact_fp32 epochs=1 {SMALL} --out runs/real"
    ),
    "latentbit train digits_resnet18_compact start=runs/real epochs=2 --out runs/tuned": (
        f"latentbit train digits_resnet18_compact start=runs/real epochs=1 {SMALL} --out runs/tuned"
    ),
    "latentbit train digits_resnet18_compact first.real_weights=true epochs=2 --out runs/staged": (
        f"latentbit train digits_resnet18_compact first.real_weights=true epochs=1 {SMALL} --out runs/staged"
    ),
    "latentbit data get cifar10": "latentbit data get cifar10 --from cifar.tar.gz",  # no network
    "latentbit train cifar10_resnet18_compact epochs=2": (
        f"latentbit train cifar10_resnet18_compact epochs=2 batch_size=16 {SMALL}"
    ),
    "latentbit train cifar10_resnet18_compact val=0.1": (
        f"latentbit train cifar10_resnet18_compact val=0.1 epochs=1 batch_size=16 {SMALL}"
    ),
    "latentbit bench model.lbit": "latentbit bench model.lbit --seconds 0.01",
    "latentbit analyze runs/digits_resnet18_compact": "latentbit analyze runs/digits_resnet18_compact --samples 20",
    "latentbit report runs/*": "latentbit report runs/digits* runs/first --samples 20",
    "latentbit compare --methods sign,sign+latent,irnet --quick --jobs 2": (
        "latentbit compare epochs=1 --methods sign,sign+latent,irnet --quick --jobs 2"
    ),
}
NOT_RUN = {
    "make wheels": "tests/test_wheels.py builds and installs them",
    "latentbit export model.lbit --to c -o firmware --real 16": "may refuse a network of one epoch; see tests/export",
    "make test": "it runs this test",
    "torchrun --nproc-per-node 4": "needs ImageNet; tests/training/test_train_processes.py runs torchrun on the digits",
    "torchrun --nnodes 2": "needs two machines and ImageNet; tests/distributed/test_meeting.py has two launchers",
}
SHOWN = {
    "latentbit export": "written",
    "latentbit zoo list": "zoo:digits",
    "latentbit demo": "seconds",
    "latentbit data get": "checksums verified",
    "latentbit train cifar10_resnet18_compact epochs=2 --dry-run": "about",
    "latentbit train": "B ",
    "latentbit eval": "W†",
    "latentbit recipes list": "cifar10_resnet18_compact_quick",
    "latentbit pack": "model.lbit",
    "latentbit run": "%",
    "latentbit bench": "images/s",
    "latentbit analyze": "reconstruction error",
    "latentbit report": "open it in a browser",
    "latentbit reproduce table8": "ResNet-34 label-aware",
    "latentbit reproduce": "label_aware",
    "latentbit compare": "irnet",
    "latentbit cost": "28.29 Mbit",
}
"""What a command must print, so that one which does nothing is not taken for one that works."""


def commands() -> list[str]:
    """The indented commands of README and paths in order, each once, without comments, continued lines joined."""
    joined = "\n".join([README, *PATHS]).replace("\\\n", " ")
    lines = re.findall(r"^    ((?:latentbit|make|torchrun) .*)$", joined, re.MULTILINE)
    found = [" ".join(line.partition("#")[0].split()) for line in lines]
    # A page of all runs comes last: its time grows with them.
    return sorted(dict.fromkeys(found), key=lambda command: command.startswith("latentbit report"))


def _known(command: str, table: dict[str, str]) -> str | None:
    return next((value for start, value in table.items() if command.startswith(start)), None)


@pytest.mark.parametrize("code", SNIPPETS)
def test_python_runs_as_it_stands(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "ship.png", tmp_path / "docs")
    exec(compile(code, "README.md", "exec"), {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with an image of a digit, and a small CIFAR-10 in an archive."""
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    made = cifar_files.records(cifar.CIFAR10.layout, part=26)
    small = dataclasses.replace(
        cifar.CIFAR10,
        n_images={split: len(r) for split, r in made.items()},
        sha256={split: hashlib.sha256(r.tobytes()).hexdigest() for split, r in made.items()},
        sources=(),
    )
    monkeypatch.setattr(cifar, "CIFAR10", small)
    (tmp_path / "my_net.py").write_text(MY_NET)
    cifar_files.pack(tmp_path / "cifar.tar.gz", cifar_files.binary(small.layout, made))
    Image.fromarray(digits.arrays()[0][0, 0]).save(tmp_path / "image.png")
    return tmp_path


def test_commands_run_one_after_the_other(folder: Path) -> None:
    ran = []
    for shown in commands():
        if _known(shown, NOT_RUN):
            continue
        command = "latentbit demo" if shown == "make demo" else shown
        ran.append(command)
        words = shlex.split(SHORTENED.get(command, command))[1:]
        words = [path for word in words for path in (sorted(glob.glob(word)) if "*" in word else [word])]
        result = CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "200"})
        assert result.exit_code == 0, f"{shown}: {result.output}"
        expected = _known(command, SHOWN)
        assert expected and expected in result.output, f"{shown}: {result.output}"
    assert len(ran) >= 20
    assert SHORTENED.keys() <= set(ran) and all(any(c.startswith(s) for c in ran) for s in SHOWN)
    assert all(any(c.startswith(start) for c in commands()) for start in NOT_RUN)


def test_make_demo_is_the_command_of_that_name() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:.*\n\t\$\(BIN\)/latentbit demo$", makefile, re.MULTILINE)


def test_recipes_of_commands_that_are_not_run_load_with_their_overrides() -> None:
    trained = [shlex.split(c.partition(" train ")[2]) for c in commands() if c.startswith("torchrun")]
    assert len(trained) == 2
    for name, *overrides in trained:
        assert recipes.load(name, overrides).data.root == "/data/imagenet"
