"""Mutates valid .lbit files: each must read as a valid network or raise PackedFileError, and run without a crash.

The oracle, a reader in plain Python, must accept and refuse the same files and name the same problem.

make fuzz                                              five minutes, seed by the clock
python tests/fuzz_lbit.py --cases 1000000 --processes 2  a long one
python tests/fuzz_lbit.py --seed 7 --only 1234           one mutant again

Every mutant that is accepted runs on every kernel set of this machine, and what they give is compared. Workers are
watched from outside: a crash, a hang of 5 s or more than 1 GB is a finding, and its file is kept.
"""

import argparse
import contextlib
import json
import math
import mmap
import multiprocessing
import os
import random
import re
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fuzz_mutations
import lbit_examples
import lbit_oracle
import numpy as np
from oracle import reader

from latentbit import _native, lbit
from latentbit.engine import Engine, available
from latentbit.lbit import Network, PackedFileError

CORPUS = Path(__file__).parent / "corpus"
SECONDS, N_BYTES = 5.0, 1 << 30
"""Limits of one mutant, from its bytes to its logits on every kernel set; the seconds are of work, not of waiting."""
WAITS = 20
"""Times SECONDS that a mutant may take by the clock: a machine may be busy, but a lock may be stuck."""
MOST_RUN = 1 << 20
"""Numbers in all values of a network that is run: those of larger ones take long to make, not to check."""
MOST_ORACLE = 100_000


@dataclass
class Outcome:
    n_cases: int = 0
    n_read: int = 0
    n_run: int = 0
    """On every kernel set."""
    n_large: int = 0
    """Accepted, but beyond MOST_RUN: read only."""
    n_compared: int = 0
    """Of those that ran: whose values are tame, so that kernel sets must agree."""
    n_differ: int = 0
    """Of those compared: logits that are not those of the first kernel set, for every input that was tried."""
    n_unlike: int = 0
    """Of those compared: logits that are not the oracle's. A value within rounding of a threshold may be."""
    slowest: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        for name, value in vars(other).items():
            if name == "slowest":
                self.slowest = max(self.slowest, value)
            else:
                setattr(self, name, getattr(self, name) + value)


def seeds() -> list[bytes]:
    """Valid files to begin with: three of ours, and the accepted ones of the corpus."""
    examples = (lbit_examples.tiny, lbit_examples.every_op, lbit_examples.version_2)
    ours = [lbit.to_bytes(make()) for make in examples]
    corpus = [path.read_bytes() for path in sorted(CORPUS.glob("accepted/*.lbit"))]
    return ours * 30 + corpus  # whose maps are large, and take their time


def mutant(seed: int, number: int, begin: list[bytes]) -> bytes:
    """The mutant of that number: it depends on nothing else."""
    rng = random.Random(seed << 32 | number)
    return fuzz_mutations.mutant(rng, rng.choice(begin))


def try_one(content: bytes, number: int, outcome: Outcome) -> None:
    """Read a mutant and run it; raises whatever is not a PackedFileError."""
    start = time.process_time()
    outcome.n_cases += 1
    expected = reader.problem(content)
    try:
        network = lbit.from_bytes(content)
    except PackedFileError as error:
        assert _native.is_printable(str(error)), repr(str(error))
        assert reader.same_problem(str(error), expected), f"{error} / oracle: {expected}"
        outcome.reasons[re.sub(r"'[^']*'|\[.*\]|-?\d+", "", str(error))[:80]] += 1
    else:
        assert expected is None, f"accepted / oracle: {expected}"
        outcome.n_read += 1
        again = lbit.to_bytes(network)
        assert lbit.to_bytes(lbit.from_bytes(again)) == again
        _run(network, number, outcome)
    outcome.slowest = max(outcome.slowest, time.process_time() - start)


def _run(network: Network, number: int, outcome: Outcome) -> None:
    """On every kernel set: a crash will not do, nor other numbers."""
    n_numbers = sum(math.prod(layer.shape) for layer in network.layers) + math.prod(network.input_shape)
    if n_numbers > MOST_RUN:
        outcome.n_large += 1
        return
    outcome.n_run += 1
    threads = 1 + number % 2
    engines = [Engine(network, isa=isa, threads=threads) for isa in available()]
    batch = 2 if n_numbers < MOST_RUN // 8 else 1
    differ = 0
    for attempt in range(4):
        images = np.random.default_rng([number, attempt]).standard_normal(
            (batch, *network.input_shape), np.float32
        )
        logits = [engine(images) for engine in engines]
        assert all(found.shape == (batch, *network.output_shape) for found in logits)
        with np.errstate(all="ignore"):
            if not _agree(logits[0], logits[1:]):
                differ += 1
        if attempt == 0 and not differ:
            break
    small = n_numbers <= MOST_ORACLE
    with np.errstate(all="ignore"):
        # What overflows is anyone's guess, NaN too.
        expected = lbit_oracle.values(network, images, np.float32) if small else {"": logits[0]}
        tame = all(np.abs(value).max() < 1e6 for value in expected.values())
    if tame:
        outcome.n_compared += 1
        outcome.n_differ += differ == 4
        if small and not _agree(expected[network.layers[-1].name], logits[:1]):
            outcome.n_unlike += 1


def _agree(first: np.ndarray, others: list[np.ndarray]) -> bool:
    close = 1e-4 * max(float(np.abs(first).max()), 1e-3)
    return all(bool(np.abs(other - first).max() <= close) for other in others)


def fuzz(seed: int, n_cases: int) -> Outcome:
    """In this process, without a watch; raises whatever is wrong."""
    outcome, begin = Outcome(), seeds()
    for number in range(n_cases):
        try_one(mutant(seed, number, begin), number, outcome)
    assert outcome.n_differ == 0
    return outcome


def _work(seed: int, numbers: range, progress: mmap.mmap, out: str) -> None:
    """A worker: tells what it is at through `progress`, and what it found through a file."""
    outcome, begin = Outcome(), seeds()
    soft = _used_bytes() + N_BYTES
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose shadow is larger than any limit
        resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
    for number in numbers:
        progress[:24] = struct.pack("<qdd", number, time.monotonic(), time.process_time())
        before = outcome.n_differ
        try:
            try_one(mutant(seed, number, begin), number, outcome)
            what = "kernel sets differ" if outcome.n_differ > before else ""
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:200]}"
        if what:
            outcome.findings.append(f"mutant {number}: {what}")
        if outcome.n_cases % 500 == 0 or number == numbers[-1] or what:
            _store(out, outcome)
    progress[:24] = struct.pack("<qdd", -1, time.monotonic(), 0)


def _store(out: str, outcome: Outcome) -> None:
    Path(f"{out}.new").write_text(json.dumps(vars(outcome)))
    os.replace(f"{out}.new", out)


def _worked(pid: int | None) -> float:
    """CPU seconds of a process, all its threads together."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def _used_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE


@dataclass
class Worker:
    """One process at a time over the numbers of one lane, started again behind a mutant that ended it."""

    seed: int
    numbers: range
    folder: Path
    outcome: Outcome = field(default_factory=Outcome)
    progress: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 24))
    process: multiprocessing.Process | None = None

    def start(self) -> None:
        self.progress[:24] = struct.pack("<qdd", self.numbers[0], time.monotonic(), 0)
        self.out = str(self.folder / f"{self.numbers.start}.json")
        self.process = multiprocessing.get_context("fork").Process(
            target=_work, args=(self.seed, self.numbers, self.progress, self.out)
        )
        self.process.start()

    def so_far(self) -> Outcome:
        found = Outcome()
        with contextlib.suppress(OSError, ValueError):
            stored = json.loads(Path(self.out).read_text())
            found = Outcome(**(stored | {"reasons": Counter(stored["reasons"])}))
        return found

    def watch(self) -> bool:
        """Whether it is still at work."""
        if self.process is None:
            return False
        number, since, worked = struct.unpack("<qdd", self.progress[:24])
        late = time.monotonic() - since > WAITS * SECONDS or _worked(self.process.pid) - worked > SECONDS
        if number >= 0 and late:
            self.process.kill()
            self._end(number, f"more than {SECONDS:g} s")
        elif not self.process.is_alive():
            self._end(number, "" if number < 0 else f"the process ended with {self.process.exitcode}")
        return self.process is not None

    def _end(self, number: int, finding: str) -> None:
        assert self.process is not None
        self.process.join()
        self.process = None
        self.outcome.add(self.so_far())
        if finding:
            self.outcome.findings.append(f"mutant {number}: {finding}")
            self.numbers = self.numbers[self.numbers.index(number) + 1 :]
            if self.numbers:
                self.start()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
            self.outcome.add(self.so_far())


def fuzz_watched(seed: int, n_cases: int, seconds: float, processes: int) -> Outcome:
    """In processes of their own; nothing is raised, findings are listed."""
    end, total = time.monotonic() + seconds, Outcome()
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(seed, range(lane, n_cases, processes), Path(folder)) for lane in range(processes)]
        for worker in workers:
            worker.start()
        shown = time.monotonic()
        while any([worker.watch() for worker in workers]) and time.monotonic() < end:
            time.sleep(0.05)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                both = Outcome()
                for worker in workers:
                    both.add(worker.outcome)
                    both.add(worker.so_far())
                print(f"{both.n_cases:,} mutants, {len(both.findings)} findings", flush=True)
        for worker in workers:
            worker.stop()
            total.add(worker.outcome)
    return total


def table(outcome: Outcome) -> Iterator[str]:
    """What the documentation shows."""
    rows = {
        "mutants": outcome.n_cases,
        "refused, with one line": sum(outcome.reasons.values()),
        "accepted": outcome.n_read,
        "run on every kernel set": outcome.n_run,
        "accepted, too large to run here": outcome.n_large,
        "compared (values below 1e6)": outcome.n_compared,
        "kernel sets differ": outcome.n_differ,
        "unlike the oracle (a value at a threshold)": outcome.n_unlike,
        "crashes, hangs over 5 s, over 1 GB, tracebacks": len(outcome.findings),
    }
    yield f"kernel sets: {', '.join(available())}"
    yield from (f"{n:>12,}  {name}" for name, n in rows.items())
    yield f"{outcome.slowest:>12.2f}  seconds of the slowest"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cases", type=int, default=1 << 31)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="the number of one mutant")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/findings"), help="where files of findings go"
    )
    arguments = parser.parse_args()
    if arguments.only is not None:
        outcome = Outcome()
        try_one(mutant(arguments.seed, arguments.only, seeds()), arguments.only, outcome)
        print(outcome)
        return
    print(f"fuzzing with --seed {arguments.seed}", flush=True)
    outcome = fuzz_watched(arguments.seed, arguments.cases, arguments.seconds, arguments.processes)
    for reason, n in outcome.reasons.most_common(12):
        print(f"{n:>12,}  {reason}")
    print("\n".join(table(outcome)))
    for finding in outcome.findings:
        number = int(re.findall(r"\d+", finding)[0])
        arguments.keep.mkdir(parents=True, exist_ok=True)
        (arguments.keep / f"{arguments.seed}-{number}.lbit").write_bytes(
            mutant(arguments.seed, number, seeds())
        )
        print(f"FOUND {finding}")
    sys.exit(bool(outcome.findings))


if __name__ == "__main__":
    main()
