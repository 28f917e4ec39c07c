"""augment: against a loop over single images, and distributions against the formulas they follow."""

import colorsys
import itertools

import numpy as np
import pytest
import torch

from latentbit.data import augment, sampling
from latentbit.data.augment import Area, Colour


def one_by_one(images: np.ndarray, draws: np.ndarray, pad: int, flip: bool) -> np.ndarray:
    height, width = images.shape[-2:]
    out = []
    for image, (top, left, mirror) in zip(images, draws, strict=True):
        padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad)))
        top, left = top % (2 * pad + 1), left % (2 * pad + 1)
        cut = padded[:, top : top + height, left : left + width]
        out.append(cut[:, :, ::-1] if flip and mirror % 2 else cut)
    return np.stack(out)


@pytest.mark.parametrize("pad", [0, 1, 2, 4])
@pytest.mark.parametrize("flip", [False, True])
def test_crop(pad: int, flip: bool) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (50, 3, 8, 9), dtype=np.uint8)
    draws = rng.integers(0, 2**63 - 1, (50, 3))
    found = augment.crop(torch.from_numpy(images), torch.from_numpy(draws), pad, flip)
    assert found.dtype == torch.uint8
    assert np.array_equal(found.numpy(), one_by_one(images, draws, pad, flip))


def test_normalise() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 2, 8, 16)
    mean, std = torch.tensor([0.4, 0.5]).view(1, 2, 1, 1), torch.tensor([0.2, 0.3]).view(1, 2, 1, 1)
    found = augment.normalise(images, mean, std)
    expected = (images.double() / 255 - mean.double()) / std.double()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)


def _boxes(area: Area, width: int, height: int, n: int = 4000) -> np.ndarray:
    chances = sampling.uniforms(np.arange(n), augment.N_CHANCES)
    return np.array([area.box(width, height, row.tolist()) for row in chances])


def test_the_area_of_a_crop_is_even_and_its_ratio_by_log() -> None:
    boxes = _boxes(Area(0.1, 0.5, 1.4), 1000, 1000)
    wide, high = (boxes[:, 2] - boxes[:, 0]), (boxes[:, 3] - boxes[:, 1])
    share, log_ratio = wide * high / 1e6, np.log(wide / high) / np.log(1.4)
    # Quantiles of even distributions; 4000 draws are off by 0.01 or so.
    for q in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert abs(np.quantile(share, q) - (0.1 + 0.4 * q)) < 0.02
        assert abs(np.quantile(log_ratio, q) - (2 * q - 1)) < 0.06
    assert abs(np.corrcoef(share, log_ratio)[0, 1]) < 0.05
    free = (
        boxes[:, 0] / (1000 - wide),
        boxes[:, 1] / (1000 - high),
    )  # the place, as a share of what is possible
    assert all(abs(np.quantile(f, q) - q) < 0.03 for f in free for q in (0.0, 0.25, 0.5, 0.75, 1.0))


def test_a_crop_is_always_inside() -> None:
    for width, height in ((30, 400), (400, 30), (1, 1), (7, 5)):
        boxes = _boxes(Area(0.08, 1.0, 4 / 3), width, height, 300)
        assert (boxes[:, :2] >= 0).all() and (boxes[:, 2] <= width).all() and (boxes[:, 3] <= height).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()


def test_where_no_crop_fits_it_is_the_middle() -> None:
    never = [0.999] * augment.N_CHANCES  # the whole area at the widest ratio
    assert Area(1.0, 1.0, 4 / 3).box(30, 400, never) == (0, 180, 30, 220)
    assert Area(1.0, 1.0, 4 / 3).box(400, 30, never) == (180, 0, 220, 30)


def recoloured(image: np.ndarray, draw: int, colour: Colour) -> np.ndarray:
    """One image (3, H, W), pixel by pixel."""
    chances = sampling.uniforms(np.array([draw]), 11)[0]
    order = list(itertools.permutations(range(4)))[int(chances[4] * 24)]
    out = image.astype(np.float64)
    grey = np.array([0.299, 0.587, 0.114])
    for kind in order:
        far = (colour.brightness, colour.contrast, colour.saturation, colour.hue)[kind]
        if not far:
            continue
        amount = far * (2 * chances[kind] - 1) + (kind < 3)
        if kind == 0:
            out = out * amount
        elif kind in (1, 2):
            middle = np.tensordot(grey, out, 1)
            middle = middle.mean() if kind == 1 else middle
            out = middle + amount * (out - middle)
        else:
            for y, x in itertools.product(*map(range, out.shape[1:])):
                hue, saturation, value = colorsys.rgb_to_hsv(*out[:, y, x])
                out[:, y, x] = colorsys.hsv_to_rgb((hue + amount) % 1, saturation, value)
        out = out.clip(0, 255)
    normal = np.sqrt(-2 * np.log(1 - chances[5:8])) * np.cos(2 * np.pi * chances[8:])
    light = np.array(augment.EIGENVECTORS) @ (normal * augment.EIGENVALUES * colour.lighting)
    return (out + 255 * light[:, None, None]).clip(0, 255)


@pytest.mark.parametrize(
    "colour",
    [
        Colour(brightness=0.4),
        Colour(contrast=0.4),
        Colour(saturation=0.4),
        Colour(hue=0.5),
        Colour(lighting=0.1),
        Colour(0.4, 0.4, 0.4, 0.1, 0.1),
    ],
)
def test_colours(colour: Colour) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 3, 4, 5), dtype=np.uint8)
    images[0] = 77  # grey has no hue
    draws = rng.integers(0, 2**63 - 1, 12)
    before = images.copy()
    found = augment.recolour(torch.from_numpy(images), draws, colour)
    expected = np.stack([recoloured(image, draw, colour) for image, draw in zip(images, draws, strict=True)])
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-2)
    assert np.array_equal(images, before), "slots of shared memory are not written to"


def test_lighting_has_the_covariance_of_its_formula() -> None:
    images = torch.full((20_000, 3, 1, 1), 128, dtype=torch.uint8)
    found = augment.recolour(images, np.arange(20_000), Colour(lighting=0.1)).numpy()[:, :, 0, 0] / 255
    vectors, values = np.array(augment.EIGENVECTORS), np.array(augment.EIGENVALUES)
    expected = vectors @ np.diag((0.1 * values) ** 2) @ vectors.T
    np.testing.assert_allclose(np.cov(found.T), expected, atol=0.03 * expected.max())


def test_no_colours_is_false() -> None:
    assert not Colour() and Colour(hue=0.1) and Colour(brightness=0.1)
