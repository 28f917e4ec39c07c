"""Ctrl-C and SIGTERM as a wish to stop after the step under way; the second one stops at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from latentbit.distributed import sum_over_processes, world_size


class StoppedAtOnce(KeyboardInterrupt):
    """A signal came where nothing is lost by stopping at once."""


class Interrupt:
    """`with Interrupt() as interrupt: ... if interrupt.wanted(): save and stop`."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.waits = True
        self.previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        # Not the handlers from before: in a background job Ctrl-C may have been ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if not self.waits:
            raise StoppedAtOnce(self.name)

    @contextmanager
    def at_once(self, wanted: bool) -> Iterator[None]:
        """Inside, if wanted, the first signal raises StoppedAtOnce: for long work that may be thrown away."""
        self.waits = not wanted
        try:
            yield
        finally:
            self.waits = True

    def wanted(self, device: torch.device) -> bool:
        """True if a signal came, to any process: they must leave the loop at the same step."""
        if world_size() == 1:
            return self.name is not None
        flag = torch.tensor(float(self.name is not None), device=device)
        return bool(sum_over_processes(flag) > 0)
