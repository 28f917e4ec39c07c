"""Every recipe runs."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from latentbit import recipes
from latentbit.training.train import train


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for split, count in (("train", 4), ("val", 2)):
        for name in ("ant", "bee"):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / split / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def teachers(images, tmp_path_factory) -> Callable[[str], Path]:
    """Runs of real networks, each trained when it is first asked for."""

    @functools.cache
    def trained(network: str) -> Path:
        out = tmp_path_factory.mktemp("teacher") / "run"
        tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
        tiny += ["batch_size=4", "epochs=1", "compile=off", "device=cpu", f"network={network}"]
        name = "imagenet_resnet34_standard" if "standard" in network else "cifar10_resnet20_fp32"
        train(recipes.load(name, tiny), out=out, quiet=True)
        return out

    return trained


def _deep(name: str) -> bool:
    """ResNet-34: the code of ResNet-18, and twice its time. ReActNet-A is larger still; small ones run elsewhere."""
    return "resnet34" in name or "reactnet_a" in name


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if _deep(n) else ()) for n in recipes.names()]
)
def test_every_recipe_runs_two_steps(name, images, teachers, tmp_path) -> None:
    tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
    tiny += ["batch_size=4", "epochs=1", "compile=off", "device=cpu", "recalibrate_batches=1"]
    tiny += ["warmup_epochs=0", "start="]
    if recipes.load(name).loss.teacher:
        # Attention maps need a teacher with stages of the student's sizes.
        network = "resnet18_standard" if "real_to_binary" in name else "resnet20"
        tiny.append(f"teacher={teachers(network)}")
    run, scores = train(recipes.load(name, tiny), out=tmp_path / "run", quiet=True)
    assert scores is not None and scores.binary.total == 4
    assert run.metrics()[0]["steps"] == 2


def test_there_are_recipes() -> None:
    assert len(recipes.names()) > 20
