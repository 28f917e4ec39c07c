"""A run directory becomes a packed network, checked against PyTorch on test images before anyone ships it."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from latentbit import runs
from latentbit.data import DataError
from latentbit.engine import Engine
from latentbit.imports import without_folder
from latentbit.lbit import Network
from latentbit.packing import pack
from latentbit.runs import RunDirectory

CLOSE = 1e-4
BATCH = 100


@dataclass(frozen=True)
class Agreement:
    """How two computations of the same logits compare."""

    n_images: int
    n_same: int
    """Images to which both give the same class, or the same to every pixel where the output is a map."""
    n_close: int
    """Images whose logits differ by at most 1e-4 of the largest logit. In the others a value lay so near to a
    threshold that rounding decided its sign."""
    largest: float
    """Largest difference of a logit, as a share of the largest logit."""

    def __str__(self) -> str:
        return (
            f"same class on {self.n_same} of {self.n_images} images, "
            f"logits within {CLOSE:.0e} on {self.n_close}, at most {self.largest:.1e} apart"
        )


@dataclass(frozen=True)
class PackedRun:
    """The network and what it was checked for."""

    network: Network
    with_torch: Agreement
    """Engine and PyTorch, both with 32-bit real layers: rounding only."""
    with_float32: Agreement | None
    """Real layers in float_bits and stem_bits and in 32 bits: what the smaller file costs."""
    n_correct: int | None
    """Of the images of with_torch, as the packed network classifies them; None for noise, and for maps."""
    missing: str = ""
    """Why there were no test images to check it on."""
    epoch: str = ""
    """Which epoch was packed, in words."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        given = {"with_torch": self.with_torch, "with_float32": self.with_float32}
        named = {key: vars(value) for key, value in given.items() if value is not None}
        return {**named, "n_correct": self.n_correct, "accuracy": self.accuracy, "epoch": self.epoch}

    @property
    def accuracy(self) -> float | None:
        return None if self.n_correct is None else self.n_correct / self.with_torch.n_images


def compare(expected: NDArray[np.float32], found: NDArray[np.float32]) -> Agreement:
    """Two arrays of logits, (N, classes) or (N, classes, H, W)."""
    same = (expected.argmax(1) == found.argmax(1)).reshape(len(expected), -1).all(axis=1)
    scale = float(np.abs(expected).max()) or 1.0
    apart = np.abs(found - expected).reshape(len(expected), -1).max(axis=1) / scale
    return Agreement(len(expected), int(same.sum()), int((apart <= CLOSE).sum()), float(apart.max()))


def pack_run(
    path: Path,
    *,
    which: str | None = None,
    float_bits: int = 32,
    stem_bits: int | None = None,
    n_images: int = 1000,
) -> PackedRun:
    """Pack the best or last network of a run; at least `n_images` of its test set (if it has them) check it.

    Where the data set is not at hand the network is checked on noise instead, and its accuracy is not known.
    """
    run = runs.open(path)
    recipe, facts = run.recipe(), run.facts()
    model = run.network(which)
    network_name = without_folder(recipe.model.network)  # a packed file tells nobody where the run was
    source: dict[str, Any] = {"recipe": recipe.name, "network": network_name, "dataset": facts.name}
    if recipe.model.binarize:
        source["method"] = without_folder(recipe.method.name)
    if facts.name in ("image_folder", "shards"):
        source["resize"] = recipe.data.resize
    example = torch.zeros(1, *facts.input_shape)
    known = {"classes": facts.classes, "mean": facts.mean, "std": facts.std, "source": source}
    exact = pack(model, example, **known)  # type: ignore[arg-type]
    images, labels, missing = _checking_images(run, n_images)
    with torch.no_grad():
        expected = torch.cat([model(part) for part in images.split(BATCH)]).numpy()
    found = _logits(exact, images)
    with_torch, with_float32, network = compare(expected, found), None, exact
    if (float_bits, stem_bits or float_bits) != (32, 32):
        network = pack(model, example, float_bits=float_bits, stem_bits=stem_bits, **known)  # type: ignore[arg-type]
        smaller = _logits(network, images)
        with_float32, found = compare(found, smaller), smaller
    n_correct = None
    if labels is not None and found.ndim == 2:
        n_correct = int((found.argmax(1) == labels.numpy()).sum())
    return PackedRun(network, with_torch, with_float32, n_correct, missing, run.epoch_in_words(which))


def _checking_images(run: RunDirectory, n_images: int) -> tuple[Tensor, Tensor | None, str]:
    """Test images and labels; or noise, no labels, and why there are no images."""
    try:
        batches = list(itertools.islice(run.dataset().test_batches(BATCH), -(-n_images // BATCH)))
    except DataError as error:
        noise = torch.Generator().manual_seed(0)
        return torch.randn(min(n_images, BATCH), *run.facts().input_shape, generator=noise), None, str(error)
    return torch.cat([images for images, _ in batches]), torch.cat([labels for _, labels in batches]), ""


def _logits(network: Network, images: Tensor) -> NDArray[np.float32]:
    engine = Engine(network)
    return np.concatenate([engine(part.numpy()) for part in images.split(BATCH)])
