import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import run_directory
from PIL import Image
from typer.testing import CliRunner

from latentbit import lbit
from latentbit.cli import app
from latentbit.data import digits
from latentbit.lbit import Layer
from latentbit.packing.pack_run import pack_run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A packed network that takes digits, as a file."""
    folder = tmp_path_factory.mktemp("packed")
    path = folder / "model.lbit"
    lbit.write(pack_run(run_directory.make(folder / "run"), n_images=1).network, path)
    return str(path)


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def _save_digits(folder: Path, n: int, by_class: bool) -> list[Path]:
    images, labels = digits.arrays()
    paths = []
    for i in range(n):
        path = folder / (str(labels[i]) if by_class else "") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[i, 0]).save(path)
        paths.append(path)
    return paths


def test_an_image_gets_five_classes(model: str, tmp_path: Path) -> None:
    (path,) = _save_digits(tmp_path, 1, by_class=False)
    lines = _run(model, path).splitlines()
    assert lines[0] == str(path) and len(lines) == 6
    probabilities = [float(line.split("%")[0]) for line in lines[1:]]
    assert probabilities == sorted(probabilities, reverse=True)


def test_a_folder_gets_one_answer_per_image(model: str, tmp_path: Path) -> None:
    _save_digits(tmp_path, 3, by_class=False)
    answers = [json.loads(line) for line in _run(model, tmp_path, "--json", "--top", 2).splitlines()]
    assert len(answers) == 3 and all(len(answer["classes"]) == 2 for answer in answers)


def test_a_tree_of_classes_gets_an_accuracy(model: str, tmp_path: Path) -> None:
    _save_digits(tmp_path, 40, by_class=True)
    score = json.loads(_run(model, tmp_path, "--json"))
    images, labels = digits.arrays()
    network = lbit.read(model)
    assert network.mean is not None and network.std is not None
    pixels = (images[:40].astype(np.float32) / 255 - network.mean[0]) / network.std[0]
    from latentbit.engine import Engine

    assert score["correct"] == int(
        (Engine(network)(pixels.astype(np.float32)).argmax(1) == labels[:40]).sum()
    )
    assert score["total"] == 40


def test_a_data_set_by_name(model: str) -> None:
    assert "of 360 images" in _run(model, "digits", "--threads", 2)


def test_one_bad_image_is_named_and_the_others_get_their_answers(model: str, tmp_path: Path) -> None:
    _save_digits(tmp_path / "flat", 3, by_class=False)
    (tmp_path / "flat" / "0a.png").write_bytes(b"nonsense")
    result = CliRunner().invoke(app, ["run", model, str(tmp_path / "flat"), "--top", "1"])
    assert result.exit_code == 1 and "1 image(s) got no answer" in str(result.exception)
    assert result.stdout.count(".png") == 3 and "0a.png cannot be decoded" in result.stderr
    lines = CliRunner().invoke(app, ["run", model, str(tmp_path / "flat"), "--json"]).stdout.splitlines()
    assert ["error" in json.loads(line) for line in lines] == [False, True, False, False]
    # In a tree of classes the accuracy is of those that could be read.
    paths = _save_digits(tmp_path / "tree", 40, by_class=True)
    paths[7].write_bytes(b"nonsense")
    result = CliRunner().invoke(app, ["run", model, str(tmp_path / "tree")])
    assert result.exit_code == 1 and "of 39 images" in result.stdout and paths[7].name in result.stderr


def test_logits_that_are_not_finite_are_no_answer(model: str, tmp_path: Path) -> None:
    network = lbit.read(model)
    huge = Layer(
        "affine",
        "huge",
        (network.layers[-1].name,),
        {},
        {"scale": np.full(10, 3e38, np.float32), "bias": np.full(10, 3e38, np.float32)},
    )
    wild = tmp_path / "wild.lbit"
    lbit.write(dataclasses.replace(network, layers=(*network.layers, huge)), wild)
    (path,) = _save_digits(tmp_path / "flat", 1, by_class=False)
    for images in (path, "digits"):
        result = CliRunner().invoke(app, ["run", str(wild), str(images)])
        assert result.exit_code == 1 and "not finite" in result.stderr + str(result.exception)


def test_errors_name_what_is_wrong(model: str, tmp_path: Path) -> None:
    for arguments, reason in (
        ([model, "nowhere"], "nowhere: no such file or folder"),
        ([model, tmp_path], "contains no images"),
        ([tmp_path / "absent.lbit", "digits"], "absent.lbit: cannot be read"),
    ):
        result = CliRunner().invoke(app, ["run", *map(str, arguments)])
        assert result.exit_code == 1 and reason in str(result.exception)


def test_a_run_directory_is_to_be_packed_first(tmp_path: Path) -> None:
    run = run_directory.make(tmp_path / "run")
    out = CliRunner().invoke(app, ["run", str(run), "digits"])
    assert f"{run} is a run directory: pack it first, with `latentbit pack {run}`" in str(out.exception)
