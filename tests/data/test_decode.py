"""decode: the exact way against Pillow by hand, the fast way within the bounds that docs/data.md states."""

import io
from pathlib import Path

import numpy as np
import pytest
from data import jpeg_files
from PIL import Image

from latentbit.data import augment, decode, sampling
from latentbit.data.augment import Area
from latentbit.data.decode import Cut

BILINEAR = Image.Resampling.BILINEAR


def jpeg(width: int, height: int, seed: int = 0, **options: object) -> bytes:
    file = io.BytesIO()
    jpeg_files.picture(np.random.default_rng(seed), width, height).save(file, "JPEG", quality=92, **options)
    return file.getvalue()


def chances(seed: int) -> list[float]:
    return sampling.uniforms(np.array([seed]), augment.N_CHANCES)[0].tolist()


def test_the_test_sees_the_centre() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 24, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    scaled = np.asarray(Image.fromarray(pixels).resize((12, 15), BILINEAR)).transpose(2, 0, 1)
    found = decode.for_test(file.getvalue(), "x", Cut(size=8, resize=12))
    assert np.array_equal(found.numpy(), scaled[:, 3:11, 2:10])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (9, 9), (200, 200, 200)).convert(mode).save(file, "TIFF" if mode == "CMYK" else "PNG")
    for exact in (False, True):
        cut = Cut(8, 8, exact=exact)
        assert decode.for_test(file.getvalue(), "x", cut).shape == (3, 8, 8)
        assert decode.for_training(file.getvalue(), "x", cut, (10**18, 10**18 + 1), ()).shape == (3, 8, 8)


def test_a_random_crop_is_that_of_the_scaled_image() -> None:
    content = jpeg(60, 45)
    scaled = (
        np.asarray(Image.open(io.BytesIO(content)).resize((43, 32), BILINEAR)).transpose(2, 0, 1).astype(int)
    )
    expected = scaled[:, 5:29, 7:31]
    place = (9 * 3 + 5, 20 * 4 + 7)  # modulo the number of places
    exact = decode.for_training(content, "x", Cut(24, 32, exact=True), place, ()).numpy()
    assert np.array_equal(exact, expected)
    fast = decode.for_training(content, "x", Cut(24, 32), place, ()).numpy()
    assert np.abs(fast - expected).max() <= 1


@pytest.mark.parametrize("seed", range(6))
def test_a_random_resized_crop_within_1_of_pillow(seed: int) -> None:
    content = jpeg(90, 64, seed)
    area = Area(0.3, 0.9, 1.5)
    image = Image.open(io.BytesIO(content)).crop(area.box(90, 64, chances(seed)))
    expected = np.asarray(image.resize((40, 40), BILINEAR)).transpose(2, 0, 1).astype(int)
    exact = decode.for_training(content, "x", Cut(40, 40, "random_resized", area, True), (), chances(seed))
    assert np.array_equal(exact.numpy(), expected)
    fast = decode.for_training(content, "x", Cut(40, 40, "random_resized", area), (), chances(seed))
    assert np.abs(fast.numpy() - expected).max() <= 1


@pytest.mark.parametrize("crop", ["random", "random_resized"])
@pytest.mark.parametrize("side", [93, 185, 370])
def test_reduced_decoding_stays_close(crop: str, side: int) -> None:
    """Mean difference below 1.5 of 255, and 99 of 100 values within 6: docs/data.md."""
    size, found = 40, []
    for seed in range(3):
        content = jpeg(side + 7, side, seed)
        ways = [Cut(size, size + 5, crop, Area(0.8, 1.0), exact) for exact in (False, True)]
        fast, exact = (
            decode.for_training(content, "x", way, (0, 3), chances(seed)).numpy().astype(int) for way in ways
        )
        found.append(np.abs(fast - exact))
    assert np.max(found) > 1 and np.mean(found) < 1.5 and np.mean(np.array(found) <= 6) > 0.99


def test_what_is_decoded_always_covers_what_is_seen() -> None:
    for side in range(1, 600):
        by = decode._reduction(side, 40)
        assert by in (1, 2, 4, 8) and (by == 1 or side / by >= 40)
        assert by == 8 or side / (2 * by) < 40, "no more than needed"


@pytest.mark.parametrize("reduction", [1, 2, 4, 8])
def test_both_decoders_give_the_same_pixels(reduction: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (jpeg(83, 61), jpeg(83, 61, subsampling=0), jpeg(83, 61, progressive=True)):
        first = decode._decoded(content, "x", reduction)[0]
        with monkeypatch.context() as without:
            without.setattr(decode, "simplejpeg", None)
            second = decode._decoded(content, "x", reduction)[0]
        assert first.shape == (-(-61 // reduction), -(-83 // reduction), 3)
        assert np.array_equal(first, second)


def test_grey_and_cmyk_jpegs() -> None:
    for mode in ("L", "CMYK"):
        file = io.BytesIO()
        Image.new("RGB", (50, 40), (90, 90, 90)).convert(mode).save(file, "JPEG")
        found = decode.for_training(file.getvalue(), "x", Cut(16, 16), (0, 0), ()).numpy().astype(int)
        assert found.shape == (3, 16, 16) and np.abs(found - 90).max() < 4


def test_what_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    whole = jpeg(60, 50)
    for content in (whole[:200], whole[: len(whole) // 2], b"", b"nonsense"):
        for exact in (False, True):
            with pytest.raises(decode.images.ImageError, match="^the name cannot be decoded") as caught:
                decode.for_training(content, "the name", Cut(16, 16, exact=exact), (0, 0), ())
            assert "0x" not in str(caught.value)
