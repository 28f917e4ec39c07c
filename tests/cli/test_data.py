"""latentbit data: what is printed, and the exit status."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from data import cifar_files, jpeg_files
from PIL import Image
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.data import cifar
from latentbit.data.dataset import DataError

run = CliRunner().invoke


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small CIFAR-10 whose records are the canonical ones for this test."""
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path / "cache"))
    made = cifar_files.records(cifar.CIFAR10.layout)
    small = dataclasses.replace(
        cifar.CIFAR10,
        n_images={split: len(r) for split, r in made.items()},
        sha256={split: hashlib.sha256(r.tobytes()).hexdigest() for split, r in made.items()},
        sources=(),
    )
    monkeypatch.setattr(cifar, "CIFAR10", small)
    return cifar_files.pack(tmp_path / "a.tar.gz", cifar_files.binary(small.layout, made))


def test_list_says_what_is_here(archive: Path) -> None:
    before = run(app, ["data", "list"])
    assert before.exit_code == 0 and "latentbit data get cifar10" in before.stdout
    assert all(name in before.stdout for name in ("digits", "cifar10", "cifar100", "image_folder"))
    run(app, ["data", "get", "cifar10", "--from", str(archive)])
    assert "latentbit data get cifar10 " not in run(app, ["data", "list"]).stdout


def test_get_then_check(archive: Path) -> None:
    assert run(app, ["data", "check", "cifar10"]).exit_code == 1
    assert "not downloaded" in run(app, ["data", "check"]).stdout
    got = run(app, ["data", "get", "cifar10", "--from", str(archive)])
    assert got.exit_code == 0 and "checksums verified" in got.stdout
    checked = run(app, ["data", "check"])
    assert checked.exit_code == 0 and "cifar10: OK, 18 images" in checked.stdout
    assert run(app, ["data", "get", "cifar10"]).exit_code == 0, "a sound cache needs no source"


def test_check_fails_on_damage_and_get_repairs_it(archive: Path) -> None:
    run(app, ["data", "get", "cifar10", "--from", str(archive)])
    path = cifar.CIFAR10.path("test")
    path.write_bytes(path.read_bytes()[:-1])
    checked = run(app, ["data", "check"])
    assert checked.exit_code == 1 and "repair it with: latentbit data get cifar10" in checked.stdout
    run(app, ["data", "get", "cifar10", "--from", str(archive)])
    assert run(app, ["data", "check"]).exit_code == 0


def test_check_of_a_folder(tmp_path: Path) -> None:
    for name in ("a/0.png", "a/1.png", "b/0.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (9, 9)).save(tmp_path / name)
    sound = run(app, ["data", "check", str(tmp_path)])
    assert sound.exit_code == 0 and "2 classes, 3 train and 0 test images, all can be decoded" in sound.stdout
    (tmp_path / "a/1.png").write_bytes(b"")
    broken = run(app, ["data", "check", str(tmp_path)])
    assert broken.exit_code == 1 and "a/1.png cannot be decoded" in broken.stdout


@pytest.mark.parametrize(
    ("name", "message"), [("digits", "nothing to download"), ("mnist", "there are cifar10, cifar100")]
)
def test_other_names(archive: Path, name: str, message: str) -> None:
    found = run(app, ["data", "get", name])
    assert isinstance(found.exception, DataError) and message in str(found.exception)


@pytest.mark.parametrize("verb", ["get", "check", "shard", "show"])
def test_help_has_examples(verb: str) -> None:
    found = run(app, ["data", verb, "--help"], env={"COLUMNS": "100", "TERM": "dumb"})
    assert "Examples" in found.stdout and f"latentbit data {verb}" in found.stdout


def test_shard_check_and_show(tmp_path: Path) -> None:
    source = jpeg_files.folder(tmp_path / "images", {"train": 4, "val": 2})
    dest = tmp_path / "shards"
    made = run(app, ["data", "shard", str(source), str(dest)])
    assert made.exit_code == 0 and "12 images in 2 shards, " in made.stdout
    assert f"dataset=shards root={dest}" in made.stdout
    assert "2 of them from before" in run(app, ["data", "shard", str(source), str(dest)]).stdout
    sound = run(app, ["data", "check", str(dest)])
    assert (
        sound.exit_code == 0 and "2 shards: 2 classes, 8 train and 4 test images, all can be" in sound.stdout
    )
    words = [
        "imagenet_resnet18",
        "dataset=shards",
        f"root={dest}",
        "--images",
        "2",
        "-o",
        str(tmp_path / "x.png"),
    ]
    assert "2 training images of shards" in run(app, ["data", "show", *words]).stdout
    with Image.open(tmp_path / "x.png") as sheet:
        assert sheet.format == "PNG"
    tar = dest / "train-000000.tar"
    tar.write_bytes(tar.read_bytes()[:-1000])
    damaged = run(app, ["data", "check", str(dest)])
    assert damaged.exit_code == 1 and f"{tar}: its checksum is not that of its index" in damaged.stdout


def test_the_list_as_json(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path))
    found = json.loads(CliRunner().invoke(app, ["data", "list", "--json"]).output)
    assert found["cache"] == str(tmp_path)
    by_name = {one["name"]: one for one in found["sets"]}
    assert by_name["digits"]["train"] == 1437 and by_name["digits"]["here"]
    assert by_name["cifar10"]["here"] is False and by_name["cifar10"]["where"] == "latentbit data get cifar10"
