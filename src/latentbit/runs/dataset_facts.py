"""What a run keeps of its data set, so that its network can be rebuilt and packed where the images are not."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from latentbit.data import Dataset
from latentbit.errors import LatentbitError


class BadFacts(LatentbitError):
    """A data.json that does not say what it must."""


@dataclass(frozen=True)
class DatasetFacts:
    """Facts about a data set; the fields of data.json."""

    name: str
    classes: tuple[str, ...]
    in_channels: int
    image_size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    n_train: int
    n_test: int
    checksum: str
    """Of the decoded images and labels; of an image folder: of the names and classes of its files."""

    @staticmethod
    def of(dataset: Dataset) -> "DatasetFacts":
        """The facts of an opened data set."""
        return DatasetFacts(
            dataset.name,
            tuple(dataset.classes),
            dataset.in_channels,
            dataset.image_size,
            tuple(dataset.mean),
            tuple(dataset.std),
            len(dataset.train),
            len(dataset.test),
            dataset.checksum(),
        )

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height, width of what the network sees."""
        return self.in_channels, self.image_size, self.image_size

    def dumps(self) -> str:
        """JSON text that loads back to equal facts."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def loads(text: str, source: str) -> "DatasetFacts":
        """Read what `dumps` wrote; `source` is named in errors."""
        try:
            found: dict[str, Any] = json.loads(text)
            values = {field.name: found[field.name] for field in fields(DatasetFacts)}
            for key in ("classes", "mean", "std"):
                values[key] = tuple(values[key])
            for key in ("in_channels", "image_size", "n_train", "n_test"):
                if not isinstance(values[key], int) or values[key] < 1:
                    raise ValueError(f"{key} is {values[key]!r}")
        except (ValueError, KeyError, TypeError) as error:
            raise BadFacts(
                f"{source} is damaged ({error}): delete it, then run `latentbit eval` on this run once, "
                "where its data set is"
            ) from None
        return DatasetFacts(**values)

    def differences(self, other: "DatasetFacts") -> list[str]:
        """Names of the facts in which the two differ."""
        return [
            field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)
        ]
