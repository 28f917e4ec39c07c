"""The 1797 hand-written digits that come with scikit-learn: 8 x 8 grey, ten classes, no download."""

import numpy as np
import torch

from latentbit.data import sampling
from latentbit.data.in_memory import InMemory, Pixels

N_TRAIN = 1437
MEAN, STD = (0.3055,), (0.376,)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 1, 8, 8) uint8 and labels, shuffled once: neighbours in the file are by one hand."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = np.round(found.images[:, None] * (255 / 16)).astype(np.uint8)
    order = sampling.fixed_order(len(images))
    return images[order], found.target[order].astype(np.uint8)


def open(image_size: int, pad: int, flip: bool, device: torch.device) -> InMemory:
    """The first 1437 of the fixed shuffle are for training, the other 360 for the test."""
    images, labels = arrays()
    size = image_size or images.shape[-1]
    train = Pixels.of(images[:N_TRAIN], labels[:N_TRAIN], size, device)
    test = Pixels.of(images[N_TRAIN:], labels[N_TRAIN:], size, device)
    return InMemory("digits", train, test, tuple("0123456789"), MEAN, STD, pad, flip)
