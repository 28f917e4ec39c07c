"""Image files against Pillow and NumPy by hand."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

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


GREYS = np.array([[0, 1, 100], [128, 200, 255]], np.uint8)
COLOURS = np.stack([GREYS, 255 - GREYS, GREYS // 2], axis=-1)


def _in_mode(mode: str) -> tuple[Image.Image, np.ndarray]:
    """A known picture in a mode of Pillow, and its colours."""
    grey = np.repeat(GREYS[..., None], 3, axis=-1)
    if mode == "1":
        return Image.fromarray(GREYS).point(lambda v: 255 * (v > 127)).convert("1"), 255 * (grey > 127)
    if mode.startswith("I;16"):
        wide = (GREYS.astype(np.uint16) * 257).astype({"I;16B": ">u2"}.get(mode, "<u2"))
        return Image.frombytes(mode, (3, 2), wide.tobytes()), grey
    if mode == "I":
        return Image.fromarray((GREYS * ((2**31 - 1) / 255)).astype(np.int32)), grey
    if mode == "F":
        return Image.fromarray(GREYS.astype(np.float32) / 255), grey
    if mode in ("L", "LA", "La"):
        return Image.fromarray(GREYS).convert("LA" if mode == "La" else mode).convert(mode), grey
    if mode in ("P", "PA"):
        palette = Image.fromarray(GREYS).convert("P")
        return palette.convert(mode), grey
    colour = Image.fromarray(COLOURS)
    if mode == "LAB":
        profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        return ImageCms.applyTransform(colour, ImageCms.buildTransform(*profiles, "RGB", "LAB")), COLOURS
    if mode == "RGBa":
        return colour.convert("RGBA").convert("RGBa"), COLOURS
    return colour.convert(mode), COLOURS


MODES = [*Image.MODES, "LA", "La", "PA", "RGBX", "RGBa", "I;16", "I;16L", "I;16B", "I;16N"]


@pytest.mark.parametrize("mode", sorted(set(MODES)))
def test_every_mode_of_pillow_becomes_the_known_picture(mode: str) -> None:
    image, colours = _in_mode(mode)
    assert image.mode == mode
    found = np.asarray(images.eight_bit(image).convert("RGB")).astype(int)
    tolerance = {"YCbCr": 2, "HSV": 6, "LAB": 16}.get(mode, 0)  # of their own 8 bits
    assert np.abs(found - colours).max() <= tolerance


@pytest.mark.parametrize("name", ["x.png", "x.tif", "x.pgm"])
def test_files_of_16_bits_are_scaled_not_clipped(name: str, tmp_path: Path) -> None:
    wide = GREYS.astype(np.uint16) * 257
    Image.fromarray(wide).save(tmp_path / name)
    assert np.array_equal(images.pixels(images.read(tmp_path / name, 1))[0], GREYS)
    assert np.array_equal(images.pixels(images.read(tmp_path / name))[2], GREYS)


def test_files_of_other_depths(tmp_path: Path) -> None:
    Image.fromarray(GREYS.astype(np.float32) / 255).save(tmp_path / "f.tif")
    assert np.array_equal(images.pixels(images.read(tmp_path / "f.tif", 1))[0], GREYS)
    Image.fromarray(GREYS.astype(np.float32)).save(tmp_path / "wild.tif")
    with pytest.raises(
        images.ImageError, match="wild.tif cannot be decoded .its values are 0 to 255, not 0 to 1"
    ):
        images.read(tmp_path / "wild.tif")
    Image.fromarray(np.array([[np.nan]], np.float32)).save(tmp_path / "nan.tif")
    with pytest.raises(images.ImageError, match="nan to nan"):
        images.read(tmp_path / "nan.tif")


def test_the_centre_is_cut() -> None:
    planes = np.arange(2 * 7 * 6, dtype=np.uint8).reshape(2, 7, 6)
    assert np.array_equal(images.cut_centre(planes, 3, 4), planes[:, 2:5, 1:5])


def test_what_cannot_be_decoded_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"nonsense")
    for name in ("x.png", "absent.png"):
        with pytest.raises(images.ImageError, match=f"{name} cannot be decoded") as caught:
            images.read(tmp_path / name)
        assert "\n" not in str(caught.value)
