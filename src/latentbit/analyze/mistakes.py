"""Where the binary network errs: the confusion matrix and the images it is most wrong about."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from latentbit.data import Batch, Dataset
from latentbit.score import Score


@dataclass(frozen=True)
class Wrong:
    """One misclassified test image; `index` is its place in the test set."""

    index: int
    label: int
    predicted: int
    probability: float
    """That the network gives to its wrong answer."""
    loss: float


@dataclass(frozen=True)
class Mistakes:
    """`confusion[i, j]` counts images of class i called j; `worst` by falling loss with images (K, C, H, W)."""

    confusion: np.ndarray
    worst: list[Wrong]
    images: np.ndarray

    @property
    def score(self) -> Score:
        return Score(int(self.confusion.trace()), int(self.confusion.sum()))

    def recall(self) -> list[float]:
        """Accuracy within each class; nan for one without test images."""
        totals = self.confusion.sum(1)
        return [float(hit / n) if n else float("nan") for hit, n in zip(self.confusion.diagonal(), totals)]  # noqa: B905

    def pairs(self, n: int = 10) -> list[tuple[int, int, int]]:
        """The `n` most frequent confusions: (class, called, how often)."""
        off = self.confusion.copy()
        np.fill_diagonal(off, 0)
        order = np.argsort(-off, axis=None, kind="stable")[:n]
        found = [(int(i // len(off)), int(i % len(off)), int(off.flat[i])) for i in order]
        return [pair for pair in found if pair[2]]


@torch.no_grad()
def mistakes(model: nn.Module, batches: Iterable[Batch], num_classes: int, keep: int = 24) -> Mistakes:
    """One pass over the batches; of the images only the `keep` worst stay in memory."""
    model.eval()
    confusion = torch.zeros(num_classes * num_classes, dtype=torch.int64)
    worst: list[tuple[Wrong, torch.Tensor]] = []
    seen = 0
    for images, labels in batches:
        logits = model(images).float()
        loss = F.cross_entropy(logits, labels, reduction="none").cpu()
        probability, predicted = (t.cpu() for t in logits.softmax(1).max(1))
        true = labels.cpu()
        confusion += torch.bincount(true * num_classes + predicted, minlength=num_classes * num_classes)
        wrong = torch.nonzero(predicted != true).flatten()
        for i in wrong[loss[wrong].argsort(descending=True)[:keep]].tolist():
            facts = Wrong(seen + i, int(true[i]), int(predicted[i]), float(probability[i]), float(loss[i]))
            worst.append((facts, images[i].cpu()))
        worst = sorted(worst, key=lambda pair: (-pair[0].loss, pair[0].index))[:keep]
        seen += len(labels)
    pictures = (
        np.stack([image.numpy() for _, image in worst]) if worst else np.zeros((0, 1, 1, 1), np.float32)
    )
    return Mistakes(confusion.view(num_classes, num_classes).numpy(), [facts for facts, _ in worst], pictures)


def as_pixels(images: np.ndarray, dataset: Dataset) -> np.ndarray:
    """Normalised images (..., C, H, W) -> bytes (..., H, W, 3) to look at; grey ones are repeated."""
    shape = (-1, 1, 1)
    plain = images * np.array(dataset.std).reshape(shape) + np.array(dataset.mean).reshape(shape)
    pixels = np.clip(np.round(plain * 255), 0, 255).astype(np.uint8)
    pixels = np.moveaxis(pixels, -3, -1)
    return np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels[..., :3]
