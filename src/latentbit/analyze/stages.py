"""Progress of long work: a live bar on a terminal, one plain line per stage elsewhere, on stderr."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from latentbit.data import Batch


class Stages:
    """`over` follows batches, `stage` surrounds work of unknown length."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.live = self.console.is_terminal and not quiet
        self.progress = Progress(*columns, console=self.console, transient=True, disable=not self.live)

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, soft_wrap=True)

    def over(self, batches: Iterable[Batch], what: str, total: int) -> Iterator[Batch]:
        """The batches, counted as they are taken."""
        with self.stage(what, total) as task:
            for batch in batches:
                yield batch
                self.progress.advance(task, len(batch[1]))

    @contextmanager
    def stage(self, what: str, total: int | None = None) -> Iterator[TaskID]:
        """Show `what` while the block runs; without a total the bar only moves."""
        if not self.live:
            self.say(what)
        task = self.progress.add_task(what, total=total)
        try:
            yield task
        finally:
            self.progress.remove_task(task)
