"""contact_sheet: every cell holds what the network sees."""

from pathlib import Path

import numpy as np
import torch
from data import jpeg_files
from PIL import Image

from latentbit import data, recipes
from latentbit.data import contact_sheet, sampling
from latentbit.data.contact_sheet import CELL, GAP, TITLE


def test_cells_are_what_is_stored_tested_and_trained_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(contact_sheet, "CELL", 32)
    jpeg_files.folder(tmp_path, {"train": 4, "val": 1}, (32, 33))
    chosen = recipes.Data(
        dataset="image_folder", root=str(tmp_path), image_size=32, resize=32, workers=0, flip=True
    )
    dataset = data.open(chosen)
    contact_sheet.write(contact_sheet.draw(dataset, 3, seed=5), tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape == (3 * (32 + GAP) + GAP + 4 * TITLE, 6 * (32 + GAP) + GAP, 3)

    def cell(x: int, y: int) -> np.ndarray:
        left, top = GAP + x * (32 + GAP), TITLE + GAP + y * (32 + GAP + TITLE)
        return sheet[top : top + 32, left : left + 32]

    for y, image in enumerate(sampling.fixed_order(8)[:3]):
        stored = np.asarray(Image.open(dataset.train.paths[image]))  # type: ignore[attr-defined]
        assert np.array_equal(cell(0, y), stored) and np.array_equal(cell(1, y), stored)
        for epoch in range(4):
            mirrored = sampling.Epoch.of(5, epoch, 8).draws[image, 2] % 2
            assert np.array_equal(cell(2 + epoch, y), stored[:, ::-1] if mirrored else stored)


def test_small_grey_images_are_drawn_as_squares() -> None:
    picture = Image.fromarray(torch.arange(4, dtype=torch.uint8).view(2, 2).numpy() * 80)
    fitted = np.asarray(contact_sheet._fitted(picture))
    assert fitted.shape == (CELL, CELL, 3) and set(np.unique(fitted)) == {0, 80, 160, 240}
