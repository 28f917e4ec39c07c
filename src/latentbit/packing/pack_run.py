"""A run directory becomes a packed network, checked against PyTorch on test images before anyone ships it."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from latentbit import data
from latentbit.engine import Engine
from latentbit.lbit import Network
from latentbit.packing import pack
from latentbit.runs.directory import RunDirectory
from latentbit.training.build import deployed_model

CLOSE = 1e-4


@dataclass(frozen=True)
class Agreement:
    """How two computations of the same logits compare."""

    n_images: int
    n_same: int
    """Images to which both give the same class."""
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
    """Real layers in float_bits and in 32 bits: what the smaller file costs."""
    n_correct: int
    """Of the images of with_torch, as the packed network classifies them."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        given = {"with_torch": self.with_torch, "with_float32": self.with_float32}
        named = {key: vars(value) for key, value in given.items() if value is not None}
        return {**named, "n_correct": self.n_correct, "accuracy": self.n_correct / self.with_torch.n_images}


def compare(expected: NDArray[np.float32], found: NDArray[np.float32]) -> Agreement:
    """Two arrays of logits (N, classes)."""
    same = expected.argmax(1) == found.argmax(1)
    scale = float(np.abs(expected).max()) or 1.0
    apart = np.abs(found - expected).max(axis=1) / scale
    return Agreement(len(expected), int(same.sum()), int((apart <= CLOSE).sum()), float(apart.max()))


def pack_run(path: Path, *, which: str = "best", float_bits: int = 32, n_images: int = 1000) -> PackedRun:
    """Pack the best or last network of a run; at least `n_images` of its test set (if it has them) check it."""
    run = RunDirectory.open(path)
    recipe = run.recipe()
    dataset = data.open(recipe.data)
    model = deployed_model(run, recipe, dataset, torch.device("cpu"), which)
    source: dict[str, Any] = {"recipe": recipe.name, "network": recipe.model.network, "dataset": dataset.name}
    if recipe.model.binarize:
        source["method"] = recipe.method.name
    if dataset.name == "image_folder":
        source["resize"] = recipe.data.resize
    example = torch.zeros(1, dataset.in_channels, dataset.image_size, dataset.image_size)
    facts = {"classes": dataset.classes, "mean": dataset.mean, "std": dataset.std, "source": source}
    exact = pack(model, example, **facts)  # type: ignore[arg-type]
    batch_size = 100
    batches = list(itertools.islice(dataset.test_batches(batch_size), -(-n_images // batch_size)))
    labels = torch.cat([label for _, label in batches]).numpy()
    with torch.no_grad():
        expected = torch.cat([model(images) for images, _ in batches]).numpy()
    found = _logits(exact, batches)
    with_torch, with_float32, network = compare(expected, found), None, exact
    if float_bits != 32:
        network = pack(model, example, float_bits=float_bits, **facts)  # type: ignore[arg-type]
        smaller = _logits(network, batches)
        with_float32, found = compare(found, smaller), smaller
    return PackedRun(network, with_torch, with_float32, int((found.argmax(1) == labels).sum()))


def _logits(network: Network, batches: list[data.Batch]) -> NDArray[np.float32]:
    engine = Engine(network)
    return np.concatenate([engine(images.numpy()) for images, _ in batches])
