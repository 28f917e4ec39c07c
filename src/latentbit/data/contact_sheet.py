"""One picture of what the network sees: training images as they are stored, in a test, and in epochs of training."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image, ImageDraw

from latentbit.atomic import atomic_write
from latentbit.data import sampling
from latentbit.data.dataset import DataError, Dataset
from latentbit.data.sampled import Sampled, to_picture

EPOCHS = 4
CELL, GAP, TITLE = 168, 6, 18
GROUND, INK = (255, 255, 255), (40, 40, 40)


def draw(opened: Dataset, n_images: int, seed: int) -> Image.Image:
    """A row for each of the first `n_images` of a fixed shuffle; titles above, classes below."""
    dataset = cast(Sampled[Any], opened)  # as all are
    if not len(dataset.train):
        raise DataError(f"{dataset.name} has no training images to show")
    chosen = sampling.fixed_order(len(dataset.train))[:n_images]
    columns = {"as stored": [dataset.original(int(image)) for image in chosen]}
    columns["in a test"] = [to_picture(image) for image in dataset.seen(chosen)]
    for epoch in range(EPOCHS):
        plan = sampling.Epoch.of(seed, epoch, len(dataset.train))
        columns[f"in epoch {epoch + 1}"] = [to_picture(image) for image in dataset.seen(chosen, plan.draws)]
    width, height = (count * (CELL + GAP) + GAP for count in (len(columns), len(chosen)))
    sheet = Image.new("RGB", (width, height + TITLE * (1 + len(chosen))), GROUND)
    pen = ImageDraw.Draw(sheet)
    labels = np.asarray(torch.as_tensor(dataset.train.labels).cpu())
    for x, (title, pictures) in enumerate(columns.items()):
        left = GAP + x * (CELL + GAP)
        pen.text((left, 4), title, INK)
        for y, picture in enumerate(pictures):
            top = TITLE + GAP + y * (CELL + GAP + TITLE)
            fitted = _fitted(picture)
            sheet.paste(fitted, (left + (CELL - fitted.width) // 2, top + (CELL - fitted.height) // 2))
            if x == 0:
                name = dataset.classes[int(labels[chosen[y]])]
                pen.text((left, top + CELL + 2), f"{name}, {picture.width} x {picture.height}", INK)
    return sheet


def _fitted(picture: Image.Image) -> Image.Image:
    """As large as a cell has room for; few pixels stay visible as squares."""
    factor = CELL / max(picture.size)
    size = [max(1, round(side * factor)) for side in picture.size]
    how = Image.Resampling.NEAREST if factor > 2 else Image.Resampling.BILINEAR
    return picture.convert("RGB").resize((size[0], size[1]), how)


def write(sheet: Image.Image, path: Path) -> None:
    """As a PNG, whole or not at all."""
    with atomic_write(path) as file:
        sheet.save(file, "PNG", optimize=True)
