"""What happens between two steps: the loss is read and shown, a checkpoint falls due, a signal asks to stop."""

import time

from latentbit import distributed
from latentbit.runs import RunDirectory
from latentbit.training.display import Display
from latentbit.training.interrupt import Interrupt
from latentbit.training.state import TrainingState


class Pulse:
    """`if pulse.after_step(): save and stop`. It also keeps the time that the steps of an epoch took."""

    def __init__(
        self, run: RunDirectory, state: TrainingState, display: Display, interrupt: Interrupt
    ) -> None:
        self.run, self.state, self.display, self.interrupt = run, state, display, interrupt
        self.saved = self.clock = time.perf_counter()
        self.images = 0
        self.terms: dict[str, float] = {}
        self.speed = 0.0

    def begin_epoch(self) -> None:
        """Steps begin now; what came before is not their time."""
        self.clock, self.images = time.perf_counter(), 0

    def after_step(self) -> bool:
        """One step is done; True if a signal asks to stop, the same on every process."""
        state, options = self.state, self.state.recipe.run
        self.images += self.state.recipe.data.batch_size
        ends = state.position.step == state.steps_per_epoch
        reading = ends or state.position.step % options.log_every == 0
        if reading:
            self._read()
        self.display.step(state.position.epoch, state.position.step, state.lr, self.speed, self.terms)
        # Many processes must stop at the same step, which takes an exchange: only when the loss is read anyway.
        stop = (reading or distributed.world_size() == 1) and self.interrupt.wanted(state.device)
        if not ends and time.perf_counter() - self.saved > 60 * options.checkpoint_minutes:
            self.save()
        return stop

    def save(self) -> None:
        """Write a checkpoint."""
        self._read()
        self.state.save(self.run)
        self.saved = time.perf_counter()

    def _read(self) -> None:
        """Wait for the device, then take the terms of the last step and the time since the last reading."""
        self.state.check_finite(self.run)
        self.terms = self.state.meter.read_latest()
        now = time.perf_counter()
        if self.images:
            self.speed = self.images / max(1e-9, now - self.clock)
            self.state.position.seconds += now - self.clock
        self.clock, self.images = now, 0
