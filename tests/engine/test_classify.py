import dataclasses
import json
from pathlib import Path

import lbit_examples
import numpy as np
import pytest
from PIL import Image

from latentbit.data import decode
from latentbit.engine import Engine, classify
from latentbit.engine.classify import (
    ImageError,
    guesses,
    labelled_images,
    read_image,
    softmax,
)
from latentbit.lbit import Network

NETWORK = lbit_examples.every_op()


def _save(path: Path, pixels: np.ndarray) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return str(path)


def _noise(seed: int, side: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(side, side, 3))


def test_an_image_of_the_right_size_is_taken_as_it_is(tmp_path: Path) -> None:
    pixels = _noise(0)
    path = _save(tmp_path / "x.png", pixels)
    image = read_image(path, NETWORK)
    assert image.dtype == np.uint8 and np.array_equal(image, pixels.transpose(2, 0, 1))
    engine = Engine(NETWORK)
    normalised = (image / np.float32(255) - np.float32([[[0.5]], [[0.4]], [[0.3]]])) / np.float32(0.2)
    expected = softmax(engine(normalised[None]))[0]
    assert next(guesses(engine, [path], top=1)).probabilities == (float(expected.max()),)


def test_other_sizes_are_resized_and_grey_becomes_colour(tmp_path: Path) -> None:
    path = _save(tmp_path / "x.png", np.full((40, 30), 255))
    assert np.array_equal(read_image(path, NETWORK), np.full((3, 6, 6), 255))


@pytest.mark.parametrize("shape", [(32, 48, 3), (33, 20, 3), (12, 12, 3)])
def test_where_training_cut_the_centre_so_do_we(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = _save(tmp_path / "x.png", np.random.default_rng(0).integers(0, 256, size=shape))
    cut = dataclasses.replace(NETWORK, source={"resize": 12}, mean=None, std=None)
    expected = decode.for_test(Path(path).read_bytes(), path, decode.Cut(size=6, resize=12))
    assert np.array_equal(read_image(path, cut), expected)


def test_a_map_gives_the_class_of_every_pixel(tmp_path: Path) -> None:
    network = lbit_examples.version_2()
    engine = Engine(network)
    path = _save(tmp_path / "a" / "x.png", _noise(3))
    logits = engine(read_image(path, network)[None], "nchw")[0]
    # The folder is named like a class, but an image has no one class: no tally.
    (answer,) = classify.classify(engine, tmp_path / "a", top=2)
    assert np.array_equal(answer.pixels, logits.argmax(0))
    assert answer.classes[0] == "abcdef"[np.bincount(logits.argmax(0).reshape(-1)).argmax()]
    assert len(answer.classes) == 2 and answer.shares[0] >= answer.shares[1] > 0
    assert f"{path}  a map of 5 x 6 pixels\n" in str(answer)
    assert json.loads(answer.as_json())["pixels"] == logits.argmax(0).tolist()
    (same,) = classify.classify(engine, tmp_path)
    assert same.pixels == answer.pixels


def test_files_that_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"nonsense")
    with pytest.raises(ImageError, match="x.png cannot be decoded"):
        read_image(tmp_path / "x.png", NETWORK)
    with pytest.raises(ImageError, match="absent.png cannot be decoded"):
        read_image(tmp_path / "absent.png", NETWORK)
    with pytest.raises(ImageError, match="takes 2 channels"):
        read_image(tmp_path / "x.png", Network((2, 1, 1), NETWORK.layers))


def test_softmax_sums_to_one_and_does_not_overflow() -> None:
    p = softmax(np.array([[1e4, 0, -1e4], [0, 0, 0]], np.float32))
    assert np.allclose(p.sum(axis=1), 1) and np.allclose(p[1], 1 / 3) and p[0, 0] == 1


def test_guesses_are_the_largest_logits(tmp_path: Path) -> None:
    paths = [_save(tmp_path / f"{i:02}.png", _noise(i)) for i in range(classify.BATCH + 3)]
    engine = Engine(NETWORK)
    found = list(guesses(engine, paths, top=2))
    assert [guess.path for guess in found] == paths
    logits = engine(np.stack([read_image(path, NETWORK) for path in paths]))
    assert [guess.classes[0] for guess in found] == [str(i) for i in logits.argmax(1)]
    assert all(guess.probabilities[0] >= guess.probabilities[1] for guess in found)


def test_folders_of_classes(tmp_path: Path) -> None:
    named = dataclasses.replace(NETWORK, classes=("ant", "bee", "cat", "dog"))
    for name in ("bee", "dog"):
        _save(tmp_path / name / "1.png", _noise(1))
    assert [name for _, name in labelled_images(tmp_path, named)] == ["bee", "dog"]
    # Without names only a folder for every output can be numbered.
    assert labelled_images(tmp_path, NETWORK) == []
    for name in ("ant", "cat"):
        _save(tmp_path / name / "1.png", _noise(1))
    assert [name for _, name in labelled_images(tmp_path, NETWORK)] == ["0", "1", "2", "3"]
    (tmp_path / "elk").mkdir()
    assert labelled_images(tmp_path, named) == []
