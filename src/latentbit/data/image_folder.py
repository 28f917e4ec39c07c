"""A folder of image files as a data set, and the check that all of them can be decoded."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.utils import data as torch_data

from latentbit import images
from latentbit.data import folders, loading
from latentbit.data.dataset import Wanted
from latentbit.data.folders import Files
from latentbit.data.pictures import Pictures, Stored


class ImageFolder(Pictures[Files]):
    """See latentbit.data.dataset.Dataset."""

    def __init__(self, root: Path, data: Wanted, device: torch.device) -> None:
        super().__init__("image_folder", *folders.find(root), data, device)

    def checksum(self) -> str:
        """sha256 of the names and classes of all files. Their contents are not read: a million images take hours."""
        total = hashlib.sha256()
        for split in (self.train, self.test):
            for path, label in zip(split.paths, split.labels, strict=True):
                total.update(f"{label} {Path(path).name}\n".encode())
        return f"sha256:{total.hexdigest()}"


class _Reasons(torch_data.Dataset[str | None]):
    """Why an image cannot be decoded; None for one that can."""

    def __init__(self, split: Stored) -> None:
        self.split = split

    def __getitem__(self, index: int) -> str | None:
        try:
            images.decode(self.split.content(index), self.split.name(index))
        except images.ImageError as error:
            return str(error)
        return None


def _told(reasons: list[str | None]) -> tuple[int, list[str]]:
    return len(reasons), [reason for reason in reasons if reason is not None]


def unreadable(split: Stored, workers: int) -> Iterator[tuple[int, list[str]]]:
    """Decode every image, 64 at a time: how many they were, and a line for each that cannot be decoded."""
    batches = np.array_split(np.arange(len(split)), max(1, len(split) // 64))
    keys = (batch.tolist() for batch in batches if len(batch))
    yield from loading.loaded(_Reasons(split), keys, workers, _told)
