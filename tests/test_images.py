"""Image files against Pillow and NumPy by hand."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from latentbit import images


def _save(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


def test_files_are_found_at_any_depth_by_their_suffix_and_sorted(tmp_path: Path) -> None:
    for name in ("b/2.PNG", "b/c/1.jpg", "a.bmp", "notes.txt", "b/list.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert images.find(tmp_path) == [str(tmp_path / name) for name in ("a.bmp", "b/2.PNG", "b/c/1.jpg")]


def test_pixels_are_those_of_the_file_channels_first(tmp_path: Path) -> None:
    colour, grey = _save(tmp_path / "c.png", (5, 7, 3)), _save(tmp_path / "g.png", (5, 7))
    assert np.array_equal(images.pixels(images.read(tmp_path / "c.png")), colour.transpose(2, 0, 1))
    assert np.array_equal(images.pixels(images.read(tmp_path / "g.png", 1)), grey[None])
    assert images.pixels(images.read(tmp_path / "g.png")).shape == (3, 5, 7)


@pytest.mark.parametrize(
    "shape, expected", [((30, 24), (15, 12)), ((24, 30), (12, 15)), ((12, 12), (12, 12))]
)
def test_the_short_side_is_scaled_and_the_other_follows(
    shape: tuple[int, int], expected: tuple[int, int], tmp_path: Path
) -> None:
    _save(tmp_path / "x.png", (*shape, 3))
    scaled = images.pixels(images.scale_short_side(images.read(tmp_path / "x.png"), 12))
    assert scaled.shape == (3, *expected)


def test_the_centre_is_cut() -> None:
    planes = np.arange(2 * 7 * 6, dtype=np.uint8).reshape(2, 7, 6)
    assert np.array_equal(images.cut_centre(planes, 3, 4), planes[:, 2:5, 1:5])


def test_what_cannot_be_decoded_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"nonsense")
    for name in ("x.png", "absent.png"):
        with pytest.raises(images.ImageError, match=f"{name} cannot be decoded") as caught:
            images.read(tmp_path / name)
        assert "\n" not in str(caught.value)
