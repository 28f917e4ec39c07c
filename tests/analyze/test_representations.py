import math

import numpy as np
import pytest
import tiny_runs
import torch

from latentbit.analyze.representations import distance_ratio, features, real_features, silhouette, tsne
from latentbit.analyze.trained import open_run


def clusters(apart: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    return (rng.normal(size=(60, 5)) + apart * np.eye(5)[labels]).astype(np.float32), labels


def test_tsne_is_the_same_for_a_seed() -> None:
    rows, _ = clusters(5)
    assert np.array_equal(tsne(rows, 3), tsne(rows, 3))
    assert not np.array_equal(tsne(rows, 3), tsne(rows, 4))
    assert tsne(rows, 0).shape == (60, 2)


def test_numbers_by_their_definitions() -> None:
    rows, labels = clusters(2)
    far = np.linalg.norm(rows[:, None].astype(float) - rows[None], axis=2)
    same = labels[:, None] == labels[None]
    own = far[same & ~np.eye(60, dtype=bool)].mean()
    assert distance_ratio(rows, labels, chunk=7) == pytest.approx(own / far[~same].mean())

    each = []
    for i in range(60):
        others = (labels == labels[i]) & (np.arange(60) != i)
        a = far[i, others].mean()
        b = min(far[i, labels == c].mean() for c in {0, 1, 2} - {labels[i]})
        each.append((b - a) / max(a, b))
    assert silhouette(rows, labels) == pytest.approx(np.mean(each), rel=1e-4)


def test_tighter_classes_score_better() -> None:
    loose, tight = clusters(1), clusters(8)
    assert silhouette(*tight) > silhouette(*loose)
    assert distance_ratio(*tight) < distance_ratio(*loose)


def test_one_class_has_no_number() -> None:
    rows, _ = clusters(1)
    one = np.zeros(60, int)
    assert math.isnan(silhouette(rows, one)) and math.isnan(distance_ratio(rows, one))


def test_features_are_the_inputs_of_the_classifier() -> None:
    trained = open_run(tiny_runs.baseline(), device="cpu")
    assert trained.views is not None
    found = features(trained.views, trained.sample(40))
    images = torch.cat([images for images, _ in trained.sample(40)])
    model = trained.model
    seen: list[torch.Tensor] = []
    model.get_submodule("fc").register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(images)
    direct = seen[0]
    assert np.allclose(found.views["B"], direct.numpy(), atol=1e-5)
    assert not np.allclose(found.views["B"], found.views["W_dagger"], atol=1e-3)
    single = open_run(tiny_runs.float_run(), device="cpu")
    assert list(real_features(single.model, single.sample(10)).views) == ["B"]
