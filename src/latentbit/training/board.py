"""TensorBoard, where it is installed (`pip install latentbit[tensorboard]`): the numbers of metrics.jsonl."""

import importlib.util
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Board:
    """Writes event files into `path`/tensorboard; does nothing without tensorboard or on other ranks."""

    def __init__(self, path: Path, first_epoch: int, wanted: bool) -> None:
        self.writer: Any = None
        if wanted and importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            # What a killed run wrote after its last checkpoint is hidden, not shown twice.
            self.writer = SummaryWriter(str(path / "tensorboard"), purge_step=first_epoch + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.writer is not None:
            self.writer.close()

    def log(self, entry: dict[str, float]) -> None:
        """One epoch."""
        if self.writer is not None:
            for name, value in entry.items():
                if name != "epoch":
                    self.writer.add_scalar(name, value, int(entry["epoch"]))
            self.writer.flush()
