"""Runs of a few epochs on the digits, trained once per session: eight binary convolutions, 8 and 16 wide."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from latentbit.analyze import Analysis, analyze
from latentbit.recipes import Data, Loss, Model, Optim, Recipe, Run
from latentbit.training.train import train


@functools.cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="latentbit-tiny-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def recipe(latent: str = "none", epochs: int = 3, binarize: bool = True) -> Recipe:
    return Recipe(
        name="tiny",
        data=Data(dataset="digits", batch_size=64, pad=1),
        model=Model("resnet18_compact", binarize=binarize, options={"norm": "both", "widths": [8, 16]}),
        loss=Loss(latent=latent, latent_weight=0.01),  # type: ignore[arg-type]
        optim=Optim(epochs=epochs),
        run=Run(device="cpu", compile="off"),
    )


@functools.cache
def baseline() -> Path:
    return train(recipe(), out=folder() / "baseline", quiet=True).run.path


@functools.cache
def label_aware() -> Path:
    return train(recipe("label_aware", 1), out=folder() / "label_aware", quiet=True).run.path


@functools.cache
def float_run() -> Path:
    return train(recipe(epochs=1, binarize=False), out=folder() / "float", quiet=True).run.path


@functools.cache
def analysis() -> Analysis:
    return analyze(baseline(), samples=120, device="cpu")


@functools.cache
def float_analysis() -> Analysis:
    return analyze(float_run(), samples=60, device="cpu")
