"""Generated pictures: smooth shapes with some noise, as photographs have, in a folder per class."""

from pathlib import Path

import numpy as np
from PIL import Image


def picture(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """Octaves of noise, the coarse ones strong and the fine ones weak."""
    total = np.zeros((height, width, 3), np.float32)
    for octave in range(1, 8):
        shape = (min(height, 2**octave), min(width, 2**octave))
        coarse = rng.normal(size=(3, *shape)).astype(np.float32) * 0.6**octave
        for channel in range(3):
            scaled = Image.fromarray(coarse[channel]).resize((width, height), Image.Resampling.BICUBIC)
            total[..., channel] += np.asarray(scaled)
    return Image.fromarray(np.clip(128 + 80 * total, 0, 255).astype(np.uint8))


def folder(
    root: Path, counts: dict[str, int], sizes: tuple[int, int] = (20, 40), classes: str = "ab"
) -> Path:
    """`counts` images of each class in each split, as JPEGs of random sizes."""
    rng = np.random.default_rng(0)
    for split, count in counts.items():
        for name in classes:
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                width, height = rng.integers(*sizes, size=2).tolist()
                picture(rng, width, height).save(root / split / name / f"{i}.jpg", quality=92)
    return root
