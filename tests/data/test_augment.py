"""augment: against a loop over single images."""

import numpy as np
import pytest
import torch

from latentbit.data import augment


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
