"""What a training shows while it runs: a live display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from latentbit.views.numbers import CHOOSING, IN_TRAINING, B

WIDE = 110
"""Columns from which the bar shows every term of the loss and the learning rate too."""
NARROW_BAR = 10
PLAIN_EVERY = 30.0
"""Seconds between plain lines inside an epoch."""


class Display:
    """Epoch, step, images/s, losses, lr, time left and the accuracies so far.

    `with display.over(epochs, steps_per_epoch, done): ...` surrounds the steps; lines can be said at any time.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet, highlight=False)
        self.live = self.console.is_terminal and not quiet
        self.scores = ""
        self.epochs = self.steps_per_epoch = self.total = self.done = 0
        self.printed = time.monotonic()
        self.timed_from: tuple[int, float] | None = None

    @contextmanager
    def over(self, epochs: int, steps_per_epoch: int, done: int) -> Iterator[None]:
        """Show the progress of so many epochs, of which `done` steps are made."""
        self.epochs, self.steps_per_epoch = epochs, steps_per_epoch
        self.total, self.done, self.timed_from = epochs * steps_per_epoch, done, None
        self.printed = time.monotonic()
        if not self.live:
            yield
            return
        # What matters most comes first, and all of it fits 80 columns; accuracies have lines of their own.
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=NARROW_BAR if self.console.width < WIDE else None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(compact=True),
        )
        with Progress(*columns, console=self.console, refresh_per_second=4) as self.progress:
            self.task = self.progress.add_task("training", total=self.total, completed=done, facts="")
            yield

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, soft_wrap=True)

    def step(self, epoch: int, step: int, lr: float, speed: float, losses: dict[str, float]) -> None:
        """One step is done."""
        self.done = epoch * self.steps_per_epoch + step
        # The first step may have compiled the network: the time that is left goes by those that follow.
        self.timed_from = self.timed_from or (self.done, time.monotonic())
        terms = "  ".join(f"{name} {value:.4g}" for name, value in losses.items())
        facts = "  ".join(filter(None, (terms, f"lr {lr:.2e}", _images_per_second(speed))))
        if self.live:
            name = f"epoch {epoch + 1}/{self.epochs}"
            first = next(iter(losses.items()), None)
            short = "" if first is None else f"{first[0]} {first[1]:.4g}  "
            room = facts if self.console.width >= WIDE else f"{short}{_images_per_second(speed)}"
            self.progress.update(self.task, completed=self.done, description=name, facts=room)
        elif time.monotonic() - self.printed > PLAIN_EVERY:
            self.printed = time.monotonic()
            self.say(
                f"epoch {epoch + 1}/{self.epochs} step {step}/{self.steps_per_epoch}  {facts}  left {self._left()}"
            )

    def evaluating(self) -> None:
        """The steps of an epoch are made, and its network is being scored: the bar says so instead of an old loss."""
        if self.live:
            self.progress.update(self.task, facts="evaluating", refresh=True)

    def epoch(self, entry: dict[str, Any]) -> None:
        """One epoch is done and logged."""
        self.printed = time.monotonic()
        present = (number for number in IN_TRAINING if number.metric in entry)
        scores = "  ".join(f"{number.name} {100 * entry[number.metric]:.2f} %" for number in present)
        if CHOOSING in entry:
            scores = f"val {B.name} {100 * entry[CHOOSING]:.2f} %  test {scores}"
        self.scores = scores if CHOOSING in entry or not scores else f"test {scores}"
        learned = f"loss {entry['loss']:.4f}  train {100 * entry['train_accuracy']:.2f} %"
        speed = f"{entry['images_per_second']:.0f} img/s  left {self._left()}"
        whole = f"epoch {entry['epoch']}/{self.epochs}  {learned}  {self.scores}  {speed}"
        if self.live and len(whole) > self.console.width and self.scores:
            self.say(f"epoch {entry['epoch']}/{self.epochs}  {learned}  {speed}")
            self.say(f"    {self.scores}")
        else:
            self.say(whole)
        if self.live:  # or the bar would end with the loss of some step before the last
            facts = f"loss {entry['loss']:.4g}  {entry['images_per_second']:.0f} img/s"
            self.progress.update(self.task, facts=facts, refresh=True)

    def _left(self) -> str:
        begun, clock = self.timed_from or (self.done, 0.0)
        if self.done == begun:
            return "?"
        seconds = int((time.monotonic() - clock) / (self.done - begun) * (self.total - self.done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _images_per_second(speed: float) -> str:
    """Nothing before it was measured."""
    return f"{speed:.0f} img/s" if speed else ""
