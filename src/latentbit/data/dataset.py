"""What every data set offers to training: facts about it, and batches of normalised float images."""

from collections.abc import Iterator, Sized
from typing import Literal, Protocol

from torch import Tensor

from latentbit.errors import LatentbitError

Batch = tuple[Tensor, Tensor]
"""Images (N, C, H, W) float32, normalised; labels (N,) int64; both on the device of the data set."""


class DataError(LatentbitError):
    """Data that is missing, broken or not what its name says."""


class Wanted(Protocol):
    """Which data set, and how its images are prepared: the fields of recipes.Data that matter here."""

    @property
    def dataset(self) -> str: ...

    @property
    def root(self) -> str: ...

    @property
    def pad(self) -> int: ...

    @property
    def flip(self) -> bool: ...

    @property
    def image_size(self) -> int: ...

    @property
    def resize(self) -> int: ...

    @property
    def crop(self) -> Literal["random", "random_resized"]: ...

    @property
    def crop_smallest(self) -> float: ...

    @property
    def crop_largest(self) -> float: ...

    @property
    def crop_ratio(self) -> float: ...

    @property
    def brightness(self) -> float: ...

    @property
    def contrast(self) -> float: ...

    @property
    def saturation(self) -> float: ...

    @property
    def hue(self) -> float: ...

    @property
    def lighting(self) -> float: ...

    @property
    def exact(self) -> bool: ...

    @property
    def broken_limit(self) -> int: ...

    @property
    def val(self) -> float: ...

    @property
    def val_seed(self) -> int: ...

    @property
    def workers(self) -> int: ...


class Dataset(Protocol):
    """Batch sizes are those of all processes together; `rank` of `world` receives its rows of each."""

    name: str
    classes: tuple[str, ...]
    in_channels: int
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def num_classes(self) -> int: ...

    @property
    def train(self) -> Sized: ...

    @property
    def test(self) -> Sized: ...

    @property
    def n_val(self) -> int:
        """Images of `train` that are kept apart for choosing an epoch."""
        ...

    def checksum(self) -> str:
        """Tells this data set from any other of its name: a digest of what was decoded, or of its files' names."""
        ...

    def steps_per_epoch(self, batch_size: int) -> int:
        """Batches of one epoch of training; a last partial batch is dropped."""
        ...

    def train_batches(
        self, epoch: int, *, batch_size: int, seed: int, rank: int = 0, world: int = 1, start_step: int = 0
    ) -> Iterator[Batch]:
        """Shuffled and augmented by (seed, epoch) alone; `start_step` resumes inside the epoch."""
        ...

    def test_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        """Each test image once over all ranks, in a fixed order; a rank may receive one batch fewer."""
        ...

    def val_batches(self, batch_size: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        """Each image that is kept apart once over all ranks, as the test sees images."""
        ...

    def statistics_batches(self, batch_size: int, limit: int | None = None) -> Iterator[Batch]:
        """At most `limit` batches to collect BatchNorm statistics on: training images, cropped and coloured as in
        training, always the same. Those of the binary network were collected on such images, and its weights fit them.
        """
        ...
