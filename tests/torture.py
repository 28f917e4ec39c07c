"""Trainings under abuse: killed, starved of disk, raced, their clock set back. Each must end as if nothing had been.

make torture                         minutes; prints a table
python tests/torture.py --short      what the test suite runs
python tests/torture.py --only writes

Commands run in children that are forked from this process, which has imported torch once: a start takes no seconds.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

import argparse  # noqa: E402
import atexit  # noqa: E402
import functools  # noqa: E402
import random  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
from tiny_run import (  # noqa: E402
    same,
    tiny_recipe,
    torchrun_command,
    weights,
    without_times,
)

import latentbit.cli  # noqa: E402
import latentbit.data.digits  # noqa: E402
import latentbit.training.train  # noqa: E402, F401
from latentbit.checkpoints.checkpoint import listed  # noqa: E402

EPOCHS = 12
OPTIONS = ("eval_every=4", "recalibrate_batches=1")
Change = Callable[[], object] | None


class Failure(Exception):
    """What a scenario found."""


class Arena:
    """A folder with the recipe and, for every number of epochs, the run that nobody disturbed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tiny_recipe(folder)

    def whole(self, epochs: int) -> Path:
        path = self.folder / f"whole-{epochs}"
        if not path.exists():
            self.must("tiny.toml", f"epochs={epochs}", *OPTIONS, "--out", str(path))
        return path

    def start(self, *arguments: str, change: Change = None) -> int:
        """`latentbit train` in a child, which does `change` first; its process id."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return child
        try:
            os.chdir(self.folder)
            log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            torch.set_num_threads(1)
            if change:
                change()
            sys.argv = ["latentbit", "train", *arguments]
            latentbit.cli.main()
        except SystemExit as error:
            os._exit(error.code if isinstance(error.code, int) else 0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(99)
        os._exit(0)

    def must(self, *arguments: str, change: Change = None) -> None:
        if code := exit_code(self.start(*arguments, change=change)):
            raise Failure(f"{arguments} ended with {code}: {self.said()}")

    def said(self) -> str:
        lines = (self.folder / "log").read_text().strip().splitlines()
        return lines[-1] if lines else ""

    def resume_or_start(self, run: Path, epochs: int, change: Change = None) -> int:
        if (run / "recipe.toml").is_file():
            return self.start("--resume", str(run), change=change)
        # Checkpoints inside epochs too: kills fall between them and inside them.
        options = (f"epochs={epochs}", *OPTIONS, "checkpoint_minutes=0.003")
        return self.start("tiny.toml", *options, "--out", str(run), change=change)

    def check(self, run: Path, epochs: int) -> None:
        whole = self.whole(epochs)
        if not same(weights(run), weights(whole)) or not same(weights(run, "best"), weights(whole, "best")):
            raise Failure(f"{run.name}: other weights than the run that was left alone")
        if without_times(run) != without_times(whole):
            raise Failure(f"{run.name}: other metrics than the run that was left alone")
        if list(run.rglob("*.tmp")):
            raise Failure(f"{run.name}: a temporary file was left")
        shutil.rmtree(run)


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def random_kills(arena: Arena, n: int) -> tuple[int, str]:
    """SIGKILL at random moments; at most 25 to a run."""
    chance, killed, n_runs, epochs = random.Random(1), 0, 0, EPOCHS
    arena.whole(epochs)
    while killed < n:
        run, here = arena.folder / f"kills-{n_runs}", 0
        n_runs += 1
        while True:
            child = arena.resume_or_start(run, epochs)
            if here < min(25, n) and killed < n:
                before = listed(run / "checkpoints")[:1]
                late = time.monotonic() + 60
                # Mostly once it has got further; now and then while it starts or restores.
                while here % 4 != 3 and listed(run / "checkpoints")[:1] == before and time.monotonic() < late:
                    time.sleep(0.005)
                time.sleep(chance.uniform(0, 0.3))
                os.kill(child, signal.SIGKILL)
            code = exit_code(child)
            if code == 0:
                break
            if code != -signal.SIGKILL:
                raise Failure(f"ended with {code}: {arena.said()}")
            here, killed = here + 1, killed + 1
        arena.check(run, epochs)
    return killed, f"{n_runs} runs of {epochs} epochs"


def kills_in_writes(arena: Arena, every: int) -> tuple[int, str]:
    """SIGKILL before every call by which a run writes, from its first start to its last file."""
    epochs, point, killed = 1, 1, 0
    while True:
        run = arena.folder / f"write-{point}"
        code = exit_code(arena.resume_or_start(run, epochs, change=functools.partial(die_at, point)))
        if code == -signal.SIGKILL:
            killed += 1
            again = exit_code(arena.resume_or_start(run, epochs))
            if again:
                raise Failure(f"killed at write {point}, it ended with {again}: {arena.said()}")
        elif code:
            raise Failure(f"ended with {code}: {arena.said()}")
        arena.check(run, epochs)
        if code == 0:
            return (
                killed,
                f"every {'' if every == 1 else f'{every}th '}call that writes, each in a run of its own",
            )
        point += every


def die_at(point: int) -> None:
    """Make this process kill itself before that call which writes, and in the middle of it if it is a write."""
    from latentbit import atomic

    seen = [0]

    def counted(function: Callable[..., Any], write: bool = False) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            seen[0] += 1
            if seen[0] == point:
                if write:
                    file, content = arguments
                    function(file, bytes(content)[: len(content) // 2])
                    file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for module, name in (
        (tempfile, "mkstemp"), (os, "fsync"), (os, "chmod"), (os, "replace"), (os, "unlink"), (os, "mkdir"),
    ):  # fmt: skip
        setattr(module, name, counted(getattr(module, name)))
    atomic._Counted.write = counted(atomic._Counted.write, write=True)  # type: ignore[method-assign]


def full_disk(arena: Arena, n: int) -> tuple[int, str]:
    """A tmpfs that fills up at different moments; after room is made the run goes on."""
    epochs, disk = 1, arena.folder / "disk"
    used = sum(f.stat().st_size for f in arena.whole(epochs).rglob("*") if f.is_file()) // 1024
    disk.mkdir()
    for i in range(n):
        free = 8 + used * i // n
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={free}k", "tmpfs", disk], check=True)
        code, said = exit_code(arena.resume_or_start(disk / "run", epochs)), arena.said()
        if code != 1 or "Traceback" in said or not said.startswith("error: "):
            raise Failure(f"with {free} kB it ended with {code}: {said}")
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        if code := exit_code(arena.resume_or_start(disk / "run", epochs)):
            raise Failure(f"after room was made it ended with {code}: {arena.said()}")
        arena.check(disk / "run", epochs)
        subprocess.run(["umount", disk], check=True)
    return n, f"tmpfs of 8 to {free} kB, the run takes {used}"


def read_only(arena: Arena, n: int) -> tuple[int, str]:
    """A finished run and a new one where nothing can be written: one line each."""
    disk = arena.folder / "locked"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
    shutil.copytree(arena.whole(1), disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for run in ("run", "other"):
        code, said = exit_code(arena.resume_or_start(disk / run, 1)), arena.said()
        if code != 1 or not said.startswith("error: ") or "Read-only file system" not in said:
            raise Failure(f"it ended with {code}: {said}")
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    arena.check(disk / "run", 1)
    return 2, "a run to resume and one to begin; nothing was changed"


def two_processes(arena: Arena, n: int) -> tuple[int, str]:
    """Others resume a run that is being trained, while its owner is killed now and then."""
    epochs, refused, run = EPOCHS, 0, arena.folder / "raced"
    owner = arena.resume_or_start(run, epochs)
    while not listed(run / "checkpoints"):
        time.sleep(0.01)
    for i in range(n):
        children = [arena.start("--resume", str(run)) for _ in range(2)]
        if i % 2:
            os.kill(owner, signal.SIGKILL)
            os.waitpid(owner, 0)
            owner = 0
        codes = [exit_code(child) for child in children]
        refused += codes.count(1)
        if any(code not in (0, 1) for code in codes):
            raise Failure(f"ended with {codes}: {arena.said()}")
        if not owner:
            owner = arena.start("--resume", str(run))
    if code := exit_code(owner):
        raise Failure(f"ended with {code}: {arena.said()}")
    arena.check(run, epochs)
    return 2 * n, f"{refused} were refused, the others took over a run whose owner was killed"


def clock_set_back(arena: Arena, n: int) -> tuple[int, str]:
    """Every start finds the clock years before the last one, and its files dated at random."""
    epochs, chance, run = EPOCHS, random.Random(2), arena.folder / "clock"
    for i in range(n):
        child = arena.resume_or_start(run, epochs, change=functools.partial(set_clock, 2e9 - 1e8 * i))
        before = listed(run / "checkpoints")[:1]
        late = time.monotonic() + 60
        while listed(run / "checkpoints")[:1] == before and time.monotonic() < late:
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        exit_code(child)
        for file in run.rglob("*"):
            date = chance.uniform(0, 4e9)
            os.utime(file, (date, date))
    if code := exit_code(arena.resume_or_start(run, epochs, change=lambda: set_clock(5))):
        raise Failure(f"ended with {code}: {arena.said()}")
    arena.check(run, epochs)
    return n, "kills, the clock 3 years back after each"


def set_clock(start: float) -> None:
    began = time.monotonic()
    time.time = lambda: start - (time.monotonic() - began)  # and it runs backwards


def torchrun_kills(arena: Arena, n: int) -> tuple[int, str]:
    """Workers of a torchrun killed one by one, each time after a new checkpoint; against one left alone."""
    chance, epochs = random.Random(3), 8

    def launch(run: Path) -> subprocess.Popen[str]:
        command = torchrun_command(
            "--standalone", "--nproc-per-node", "2", "--max-restarts", str(n + 2), "--monitor-interval", "0.1"
        )
        command += ["-m", "latentbit", "train", "tiny.toml", f"epochs={epochs}", "--out", str(run)]
        log = (arena.folder / "log").open("w")
        return subprocess.Popen(command, cwd=arena.folder, stdout=log, stderr=log, text=True)

    alone, run, killed = arena.folder / "alone", arena.folder / "together", 0
    if code := launch(alone).wait():
        raise Failure(f"ended with {code}: {arena.said()}")
    process = launch(run)
    while process.poll() is None and killed < n:
        before = listed(run / "checkpoints")[:1]
        while process.poll() is None and listed(run / "checkpoints")[:1] == before:
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if process.poll() is None and children:
            os.kill(int(chance.choice(children)), signal.SIGKILL)
            killed += 1
    if code := process.wait():
        raise Failure(f"ended with {code}: {arena.said()}")
    if not same(weights(run), weights(alone)) or without_times(run) != without_times(alone):
        raise Failure("other weights or metrics than the workers that were left alone")
    return killed, "one of two workers each time, then both restart"


SCENARIOS: dict[str, tuple[Callable[[Arena, int], tuple[int, str]], int, int]] = {
    "kills": (random_kills, 100, 2),
    "writes": (kills_in_writes, 1, 16),
    "disk": (full_disk, 6, 0),
    "readonly": (read_only, 1, 0),
    "processes": (two_processes, 6, 1),
    "clock": (clock_set_back, 6, 0),
    "torchrun": (torchrun_kills, 5, 0),
}
"""By name: what to do, how often, and how often in the short form; 0 leaves it out, other tests do it."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", choices=SCENARIOS)
    arguments = parser.parse_args()
    if not arguments.short and os.geteuid() == 0 and "LATENTBIT_TORTURE" not in os.environ:
        # Mounts of our own, which end with us.
        os.environ["LATENTBIT_TORTURE"] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    folder = Path(tempfile.mkdtemp(prefix="latentbit-torture-"))
    server = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == server else None)
    failed, arena = False, Arena(folder)
    print("| abuse | times | ends bit for bit alike | seconds | |\n|---|---|---|---|---|", flush=True)
    for name, (abuse, often, seldom) in SCENARIOS.items():
        n = seldom if arguments.short else often
        if n == 0 or arguments.only not in (None, name):
            continue
        start = time.monotonic()
        try:
            times, what = abuse(arena, n)
            result = "yes"
        except Failure as failure:
            times, what, result, failed = 0, str(failure), "NO", True
        print(f"| {name} | {times} | {result} | {time.monotonic() - start:.0f} | {what} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
