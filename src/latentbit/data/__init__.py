"""A name becomes a data set, a data set yields batches of normalised float images.

data = open(recipe.data, device)
for images, labels in data.train_batches(epoch, batch_size=128, seed=0): ...
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from latentbit.data.augment import Colour
from latentbit.data.dataset import Batch, DataError, Dataset, Wanted
from latentbit.imports import is_import

if TYPE_CHECKING:
    from latentbit.data.image_folder import ImageFolder
    from latentbit.data.in_memory import InMemory
    from latentbit.data.own import OwnImages
    from latentbit.data.shards import ShardedImages

__all__ = ["Batch", "DataError", "Dataset", "Wanted", "open"]


def open(data: Wanted, device: torch.device | str = "cpu") -> Dataset:
    """The data set that is named, its batches on `device`; `val` of its training images kept apart."""
    dataset = _open(data, torch.device(device))
    dataset.recolour(Colour(data.brightness, data.contrast, data.saturation, data.hue, data.lighting))
    if data.val > 0:
        dataset.hold_out(data.val, data.val_seed)
    return dataset


def _open(data: Wanted, device: torch.device) -> InMemory | ImageFolder | ShardedImages | OwnImages:
    if data.crop != "random" and data.dataset not in ("image_folder", "shards"):
        raise DataError(
            f"crop = {data.crop!r} is for dataset = 'image_folder' or 'shards': images of {data.dataset} are "
            "shifted by pad="
        )
    if data.dataset == "digits":
        from latentbit.data import digits

        return digits.open(data.image_size, data.pad, data.flip, device)
    if data.dataset in ("cifar10", "cifar100"):
        from latentbit.data import cifar

        kind = cifar.CIFAR10 if data.dataset == "cifar10" else cifar.CIFAR100
        return cifar.open(kind, data.image_size, data.pad, data.flip, device)
    if data.dataset == "image_folder":
        from latentbit.data.image_folder import ImageFolder

        root = Path(data.root).expanduser() if data.root else None
        if root is None:
            raise DataError("image_folder needs a folder: set root=DIR, with train/ and val/ in it")
        return ImageFolder(root, data, device)
    if data.dataset == "shards":
        from latentbit.data.shards import ShardedImages

        if not data.root:
            raise DataError(
                "shards need a folder: set root=DIR to the one that `latentbit data shard` has filled"
            )
        return ShardedImages(Path(data.root).expanduser(), data, device)
    if is_import(data.dataset):
        from latentbit.data import own

        return own.open(data, device)
    raise DataError(
        f"{data.dataset!r} is not a data set: choose digits, cifar10, cifar100, image_folder, shards or a function "
        "of your own, my_file.py:my_data"
    )
