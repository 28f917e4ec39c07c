"""What B and W learned: the paper's analyses of a trained run as plain data.

    analysis = analyze(Path("runs/cifar10_resnet18_compact"), samples=2000)
    analysis.numbers["accuracy"]["W_dagger"]["accuracy"]

Each module holds one analysis and works on any model or run; drawing is in latentbit.figures.
Accuracies and mistakes are of the whole test set, the rest of `samples` images spread evenly over it.
"""

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from latentbit import __version__, runs
from latentbit.analyze import accuracy, feature_maps, mistakes, reconstruction, representations, weights
from latentbit.analyze.stages import Stages
from latentbit.analyze.stored import FOLDER, FORMAT, Analysis, dumps, load_analysis, save_analysis
from latentbit.analyze.trained import NothingToAnalyze, Trained, open_run
from latentbit.checkpoints.checkpoint import fingerprint
from latentbit.imports import without_folder
from latentbit.models import cost
from latentbit.views.numbers import BY_KEY

__all__ = [
    "Analysis",
    "NothingToAnalyze",
    "analyze",
    "analyze_once",
    "load_analysis",
    "open_run",
    "save_analysis",
]

SAMPLES = 2000
MATRIX_UP_TO = 200
"""Classes up to which the whole confusion matrix goes into the JSON."""


def analyze_once(
    path: Path, *, again: bool = False, stages: Stages | None = None, **options: Any
) -> Analysis:
    """The stored analysis of a run if it is of the same weights and of the options given, else a new one, stored.

    Options left out are taken as they were stored.
    """
    stages = stages or Stages(quiet=True)
    directory = runs.open(path)
    if options.get("layer") is not None:
        feature_maps.check_layer(directory.untrained(), options["layer"])
    digest = fingerprint(directory.weights(options.get("which")))
    folder = directory.path / FOLDER
    found = None if again else load_analysis(folder)
    wanted = {key: value for key, value in options.items() if key != "device"}
    if "which" in wanted:
        wanted["which"] = directory.chosen(wanted["which"])
    wanted |= {"weights": digest, "epochs": len(directory.metrics())}
    if found is not None and wanted.items() <= found.numbers["asked"].items():
        return found
    analysis = analyze(path, stages=stages, **options)
    save_analysis(analysis, folder)
    return analysis


def analyze(
    path: Path,
    *,
    which: str | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    layer: str | None = None,
    image: int = 0,
    device: str = "auto",
    stages: Stages | None = None,
) -> Analysis:
    """Every analysis of one run. `layer` and `image` choose the feature maps, `seed` the t-SNE layout."""
    stages = stages or Stages(quiet=True)
    trained = open_run(path, which, device, stages.over)
    errs = mistakes.mistakes(
        trained.model, trained.test(stages.over, "B on the test set"), trained.dataset.num_classes
    )
    scores = accuracy.accuracies(trained, errs.score, stages.over)
    history = trained.directory.metrics()
    counted = cost.count(trained.model, _input_shape(trained))
    numbers = _facts(trained) | {
        "asked": {
            "weights": fingerprint(trained.directory.weights(which)),
            "epochs": len(history),
            "which": trained.which,
            "samples": samples,
            "seed": seed,
            "layer": layer,
            "image": image,
        },
        "history": history,
        "accuracy": accuracy.as_numbers(scores),
        "mistakes": _mistakes(errs),
        "cost": counted.as_dict(),
    }
    arrays = {"worst": mistakes.as_pixels(errs.images, trained.dataset)}
    numbers["representations"], points = _representations(trained, samples, seed, stages)
    arrays |= points
    if trained.views is not None:
        batches = trained.sample(samples, stages.over, "reconstruction error")
        errors = reconstruction.errors(trained.views, batches)
        known = [error.activated for error in errors.values() if error.activated is not None]
        numbers["reconstruction"] = {
            "layers": {name: error.absolute for name, error in errors.items()},
            "unexplained": {name: error.unexplained for name, error in errors.items()},
            "activated": {name: error.activated for name, error in errors.items()},
            "average": mean(error.absolute for error in errors.values()),
            "average_unexplained": mean(error.unexplained for error in errors.values()),
            "average_activated": mean(known) if known else None,
        }
        limit, layers = weights.latent_weights(trained.model)
        flips = [[entry["epoch"], entry["flip_rate"]] for entry in history if "flip_rate" in entry]
        numbers["weights"] = {
            "limit": limit,
            "layers": [one.as_dict() for one in layers],
            "flip_rate": flips,
        }
        if "binary conv" in counted.kinds():
            numbers["feature_maps"], pictures = _feature_maps(trained, layer, image)
            arrays |= pictures
    return Analysis(json.loads(dumps(numbers)), arrays)


def _facts(trained: Trained) -> dict[str, Any]:
    recipe, dataset = trained.recipe, trained.dataset
    name = trained.directory.path.resolve().name
    return {
        "format": FORMAT,
        "latentbit": __version__,
        "run": name,
        "recipe": recipe.name,
        "epoch": trained.epoch,
        "epoch_in_words": trained.directory.epoch_in_words(trained.which),
        "dataset": dataset.name,
        "classes": list(dataset.classes),
        "network": without_folder(recipe.model.network),
        "method": without_folder(recipe.method.name),
        "loss": _short_loss(trained),
        "input": list(_input_shape(trained)),
        "recalibrate_batches": recipe.run.recalibrate_batches,
    }


def _short_loss(trained: Trained) -> str:
    if trained.views is None:
        return "real"
    return "baseline" if trained.recipe.loss.latent == "none" else trained.recipe.loss.latent


def _input_shape(trained: Trained) -> tuple[int, int, int]:
    size = trained.dataset.image_size
    return trained.dataset.in_channels, size, size


def _mistakes(errs: mistakes.Mistakes) -> dict[str, Any]:
    small = len(errs.confusion) <= MATRIX_UP_TO
    return {
        "confusion": errs.confusion.tolist() if small else None,
        "recall": errs.recall(),
        "pairs": [list(pair) for pair in errs.pairs()],
        "worst": [asdict(one) for one in errs.worst],
    }


def _representations(
    trained: Trained, samples: int, seed: int, stages: Stages
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    batches = trained.sample(samples, stages.over, "penultimate features")
    if trained.views is not None:
        found = representations.features(trained.views, batches)
    else:
        found = representations.real_features(trained.model, batches)
    arrays = {"labels": found.labels}
    numbers: dict[str, Any] = {"n": len(found.labels), "views": {}}
    for key, rows in found.views.items():
        with stages.stage(f"t-SNE of {len(rows)} features of {BY_KEY[key].name}"):
            arrays[f"tsne_{key}"] = representations.tsne(rows, seed)
            numbers["views"][key] = {
                "silhouette": representations.silhouette(rows, found.labels),
                "distance_ratio": representations.distance_ratio(rows, found.labels),
            }
    return numbers, arrays


def _feature_maps(
    trained: Trained, layer: str | None, image: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    assert trained.views is not None
    if not 0 <= image < trained.n_test:
        raise NothingToAnalyze(f"there is no test image {image}: choose 0 to {trained.n_test - 1}")
    skip, offset = divmod(image, trained.batch_size)
    images, labels = next(islice(trained.dataset.test_batches(trained.batch_size), skip, None))
    found = feature_maps.maps(trained.views, images[offset], layer)
    numbers = {
        "layer": found.layer,
        "image": image,
        "label": int(labels[offset]),
        "agreement": found.agreement(),
    }
    arrays = {f"maps_{key}": maps.astype(np.float32) for key, maps in found.views.items()}
    arrays["image"] = mistakes.as_pixels(images[offset].cpu().numpy(), trained.dataset)
    return numbers, arrays
