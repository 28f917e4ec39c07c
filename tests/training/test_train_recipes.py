"""Every recipe runs."""

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
def teacher(images, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("teacher") / "run"
    tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
    chosen = recipes.load(
        "cifar10_resnet20_fp32", [*tiny, "batch_size=4", "epochs=1", "compile=off", "device=cpu"]
    )
    train(chosen, out=out, quiet=True)
    return out


def _deep(name: str) -> bool:
    """ResNet-34: the code of ResNet-18, and twice its time."""
    return "resnet34" in name


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if _deep(n) else ()) for n in recipes.names()]
)
def test_every_recipe_runs_two_steps(name, images, teacher, tmp_path) -> None:
    tiny = ["dataset=image_folder", f"root={images}", "image_size=32", "resize=32", "workers=0"]
    tiny += ["batch_size=4", "epochs=1", "compile=off", "device=cpu", "recalibrate_batches=1"]
    tiny += ["warmup_epochs=0", "start="]
    if recipes.load(name).loss.teacher:
        tiny.append(f"teacher={teacher}")
    run, scores = train(recipes.load(name, tiny), out=tmp_path / "run", quiet=True)
    assert scores is not None and scores.binary.total == 4
    assert run.metrics()[0]["steps"] == 2


def test_there_are_recipes() -> None:
    assert len(recipes.names()) > 20
