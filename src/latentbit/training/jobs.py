"""Several trainings, one after the other or side by side: each then a process of its own with one thread.

Two trainings with one thread each finish sooner than one after the other with two. A job that fails does not stop
the others. A signal to this process reaches all of them, and each saves what it has; so it does if this process dies.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from latentbit import runs
from latentbit.errors import LatentbitError
from latentbit.imports import is_trusting, require_trust, trusting
from latentbit.recipes.recipe import code_named
from latentbit.runs import Place, RunDirectory
from latentbit.training.display import Display
from latentbit.training.interrupt import Interrupt
from latentbit.training.plan import duration, seconds_of_steps
from latentbit.training.train import train

Result = RunDirectory | str | None
"""The finished run; why there is none; or None if a signal came before it was finished."""


@dataclass(frozen=True)
class Job:
    """A training under a name that its progress is shown by."""

    name: str
    place: Place


def train_all(jobs: Sequence[Job], n_processes: int = 1, *, quiet: bool = False) -> dict[str, Result]:
    """Finish every job that is not finished yet; results by name, in the order given."""
    results: dict[str, Result] = {
        job.name: runs.open(job.place.path) if job.place.finished else None for job in jobs
    }
    todo = [job for job in jobs if not job.place.finished]
    for job in todo:  # or each would fail alone
        for name in code_named(job.place.recipe).values():
            require_trust(name)
    if len(todo) > 1 and not quiet:
        print(_forecast(todo, n_processes), flush=True)
    if n_processes > 1 and len(todo) > 1:
        results |= _side_by_side(todo, n_processes, quiet)
        return results
    for n, job in enumerate(todo):
        if not quiet:
            print(f"[{n + 1}/{len(todo)}] {job.name}", flush=True)
        results[job.name] = _one(job, quiet)
        if results[job.name] is None:
            break
    return results


def _forecast(todo: Sequence[Job], n_processes: int) -> str:
    """How long it will take, by the pace of the first job on all threads; evaluations come on top."""
    first = todo[0].place.recipe
    try:
        each = seconds_of_steps(first) / first.optim.epochs
    except LatentbitError:  # which its training will tell
        return f"{len(todo)} trainings"
    total = each * sum(job.place.recipe.optim.epochs for job in todo)
    beside = f", {n_processes} at a time" if n_processes > 1 else ""
    return f"{len(todo)} trainings{beside}: about {duration(total)} at the pace of {todo[0].name}, and the evaluations"


def _one(job: Job, quiet: bool, display: Display | None = None) -> Result:
    try:
        trains = partial(train, display=display)
        return runs.obtain(job.place.recipe, trains, at=job.place.path, quiet=quiet)
    except LatentbitError as error:
        return str(error)


class _Parent:
    """The parent, as the process of a job knows it. When it says stop or is gone, this process saves and stops."""

    def __init__(self, hears: Connection, speaks: Connection) -> None:
        self.hears, self.speaks, self.stopping = hears, speaks, False

    def tell(self, *message: Any) -> None:
        try:
            self.hears.send(message)
        except OSError:  # it is gone
            self.stopping = True

    def listen(self) -> None:
        """Pass on the wish to stop, as the signal that a training understands."""
        try:
            if not self.stopping and self.speaks.poll():
                self.speaks.recv()
                self.stopping = True
        except (EOFError, OSError):
            self.stopping = True
        # Where the handler is the default one, the signal has come already: a terminal's reaches all processes.
        if self.stopping and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            signal.raise_signal(signal.SIGTERM)


class _Told(Display):
    """The display of a process: tells the parent, which shows one line for each job."""

    def __init__(self, name: str, parent: _Parent) -> None:
        super().__init__(quiet=True)
        self.name, self.parent = name, parent
        self.last = 0.0

    def step(self, epoch: int, step: int, lr: float, speed: float, losses: dict[str, float]) -> None:
        """At most two messages a second."""
        self.done = epoch * self.steps_per_epoch + step
        self.parent.listen()
        if time.monotonic() - self.last > 0.5:
            self.last = time.monotonic()
            loss = f"loss {losses['loss']:.4g}  " if losses else ""
            facts = f"{loss}{speed:.0f} img/s  {self.scores}"
            self.parent.tell("step", self.name, self.done, self.total, facts)

    def say(self, text: str) -> None:
        """Lines of an epoch, and what a user should know."""
        self.parent.tell("say", self.name, text)


def _work(job: Job, hears: Connection, speaks: Connection, trusted: bool) -> None:
    """What the process of one job does."""
    import torch

    torch.set_num_threads(1)
    parent = _Parent(hears, speaks)
    with trusting(trusted):
        result = _one(job, quiet=True, display=_Told(job.name, parent))
    parent.tell("done", job.name, result.path if isinstance(result, RunDirectory) else result)


@dataclass(frozen=True)
class _Running:
    """A job, its process, and the end of the pipe that it is told to stop through."""

    job: Job
    process: BaseProcess
    tell: Connection


def _side_by_side(todo: Sequence[Job], n_processes: int, quiet: bool) -> dict[str, Result]:
    context = multiprocessing.get_context("spawn")
    waiting, running = list(todo), dict[Connection, _Running]()
    results: dict[str, Result] = {job.name: None for job in todo}
    stopping = False
    with _one_thread_each(), Interrupt() as interrupt, _lines(quiet) as show:
        while waiting or running:
            while waiting and len(running) < n_processes:
                job = waiting.pop(0)
                # Pipes for each: a killed process cannot leave a lock behind that the others wait for. One for each
                # direction: a socket for both would be reset by a process that ends without having read all.
                hear, theirs = context.Pipe(duplex=False)
                listens, tell = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(job, theirs, listens, is_trusting()))
                process.start()
                theirs.close()
                listens.close()
                running[hear] = _Running(job, process, tell)
            for pipe in wait(list(running), timeout=0.2):
                assert isinstance(pipe, Connection)
                if not _hear(pipe, results, show):
                    ended = running.pop(pipe)
                    ended.process.join()
                    ended.tell.close()
                    if ended.process.exitcode and results[ended.job.name] is None:
                        problem = f"its process ended with exit code {ended.process.exitcode}"
                        results[ended.job.name] = problem
                        show("say", ended.job.name, f"failed: {problem}")
                    show("end", ended.job.name)
            if interrupt.name is not None and not stopping:
                stopping = True
                waiting.clear()
                for one in running.values():
                    with suppress(OSError):  # of a process that has just ended
                        one.tell.send("stop")
    return results


def _hear(pipe: Connection, results: dict[str, Result], show: Callable[..., None]) -> bool:
    """Take one message of a process; False when it has ended."""
    try:
        kind, name, *rest = pipe.recv()
    except EOFError:
        return False
    if kind == "done":
        results[name] = runs.open(rest[0]) if isinstance(rest[0], Path) else rest[0]
        if isinstance(rest[0], str):
            show("say", name, f"failed: {rest[0]}")
    else:
        show(kind, name, *rest)
    return True


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """The environment that the processes are started with."""
    wanted = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@contextmanager
def _lines(quiet: bool) -> Iterator[Callable[..., None]]:
    """One progress line for each job on a terminal, plain lines elsewhere."""
    console = Console(quiet=quiet, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, refresh_per_second=4, disable=not console.is_terminal) as bars:

        def show(kind: str, name: str, *rest: Any) -> None:
            if kind == "say":
                console.print(f"{name}: {rest[0]}", markup=False, soft_wrap=True)
            elif kind == "step":
                if name not in tasks:
                    tasks[name] = bars.add_task(name, facts="")
                done, total, facts = rest
                bars.update(tasks[name], completed=done, total=total, facts=facts)
            elif name in tasks:
                bars.remove_task(tasks.pop(name))

        yield show
