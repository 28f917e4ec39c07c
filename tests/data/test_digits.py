"""digits: the embedded set, its fixed split and its statistics."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from latentbit.data import digits


def test_split_holds_every_digit_once() -> None:
    images, labels = digits.arrays()
    source = load_digits()
    assert images.shape == (1797, 1, 8, 8) and images.dtype == np.uint8 and images.max() == 255
    ours = sorted((label, *image.ravel()) for label, image in zip(labels.tolist(), images, strict=True))
    theirs = np.round(source.images * 255 / 16).astype(np.uint8)
    assert ours == sorted((t, *x.ravel()) for t, x in zip(source.target.tolist(), theirs, strict=True))


def test_statistics_and_balance() -> None:
    data = digits.open(0, 2, False, torch.device("cpu"))
    assert (len(data.train), len(data.test), data.num_classes, data.in_channels) == (1437, 360, 10, 1)
    scaled = data.train.images.double() / 255
    assert scaled.mean().item() == pytest.approx(data.mean[0], abs=5e-5)
    assert scaled.std().item() == pytest.approx(data.std[0], abs=5e-5)
    assert np.bincount(data.test.labels.numpy()).min() >= 25
    assert digits.open(16, 2, False, torch.device("cpu")).image_size == 16
