"""Penultimate features of B and W: t-SNE maps and two numbers for how well classes are apart (paper, Fig. 4).

silhouette: mean of (b - a) / max(a, b), a the mean distance to the own class, b to the nearest other one;
1 is perfect. distance ratio: mean distance inside classes over mean distance between classes; lower is tighter.
Both are of the features themselves, not of their maps.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from latentbit.data import Batch
from latentbit.views import FeatureTap, TwoView, last_linear
from latentbit.views.numbers import W_DAGGER, B


@dataclass(frozen=True)
class Features:
    """Inputs of the classifier, (N, D) float32 per view, and labels (N,)."""

    views: dict[str, np.ndarray]
    """B and W_dagger; only B for a network without binary layers."""
    labels: np.ndarray


@torch.no_grad()
def features(views: TwoView, batches: Iterable[Batch]) -> Features:
    """Features of both views; nothing else of a batch is kept."""
    binary, latent, labels = [], [], []
    for images, batch_labels in batches:
        out = views(images)
        binary.append(out.features.cpu())
        latent.append(out.latent_features.cpu())
        labels.append(batch_labels.cpu())
    found = {B.key: torch.cat(binary).numpy(), W_DAGGER.key: torch.cat(latent).numpy()}
    return Features(found, torch.cat(labels).numpy())


@torch.no_grad()
def real_features(model: nn.Module, batches: Iterable[Batch]) -> Features:
    """The same of a network that has one view."""
    tap = FeatureTap(model, last_linear(model))
    rows, labels = [], []
    for images, batch_labels in batches:
        tap.arm()
        model(images)
        rows.append(tap.take()[0].cpu())
        labels.append(batch_labels.cpu())
    return Features({B.key: torch.cat(rows).numpy()}, torch.cat(labels).numpy())


def tsne(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """(N, D) -> (N, 2), the same for the same rows and seed.

    It starts from the first two principal components, so that maps of two views can be compared; the seed
    adds a tenth of noise, to see what of a map is chance.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    start = PCA(2, svd_solver="full").fit_transform(rows.astype(np.float64))
    start *= 1e-4 / max(1e-12, float(start[:, 0].std()))  # the scale that scikit-learn gives its own start
    start += np.random.default_rng(seed).normal(scale=1e-5, size=start.shape)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    settings = TSNE(perplexity=perplexity, init=start, learning_rate="auto", random_state=seed, n_jobs=1)
    return settings.fit_transform(rows.astype(np.float64)).astype(np.float32)


def silhouette(rows: np.ndarray, labels: np.ndarray) -> float:
    """Mean silhouette of the classes as clusters; nan where there is one class only."""
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(rows, labels))


def distance_ratio(rows: np.ndarray, labels: np.ndarray, chunk: int = 256) -> float:
    """Mean distance of pairs of one class over that of pairs of two classes; a chunk of rows at a time."""
    sums, counts = np.zeros(2), np.zeros(2)
    points = torch.from_numpy(rows).double()
    for start in range(0, len(rows), chunk):
        distances = torch.cdist(points[start : start + chunk], points).numpy()
        same = labels[start : start + chunk, None] == labels[None, :]
        for which, mask in enumerate((same, ~same)):
            sums[which] += distances[mask].sum()
            counts[which] += mask.sum()
    counts[0] -= len(rows)  # a row with itself is no pair
    if not counts.all():
        return float("nan")
    return float((sums[0] / counts[0]) / (sums[1] / counts[1]))
