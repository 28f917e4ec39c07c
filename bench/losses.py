"""The label-aware loss from class sums against its pairwise form: time, peak memory, growth with the batch.

    python bench/losses.py            a table
    python bench/losses.py --json     the same numbers for programs

Forward and backward, float32, D = 128, 1000 classes, 1 thread. Timings of the two forms alternate, so that both
meet the same noise; memory is the growth of the peak resident set in a fresh process (Linux).
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from latentbit import losses

SIZES = (256, 2048, 8192)
FAR = (4096, 8192, 16384, 32768)
DIM, CLASSES, THREADS = 128, 1000, 1


def class_sums(z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
    """What the library computes: O(N D)."""
    return losses.label_aware(z_b, z_w, labels, CLASSES)


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """By one matrix product, so that nothing of size N x N x D is formed."""
    return a.square().sum(1)[:, None] + b.square().sum(1)[None, :] - 2 * a @ b.T


def pairwise(z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
    """Eq. 5 of the paper as it is printed, from N x N distance matrices."""
    same = (labels[:, None] == labels[None, :]).to(z_b.dtype)
    same.fill_diagonal_(0)
    weight = 1 / ((3 * same.sum(1) + 1) * z_b.shape[1])
    binary = squared_distances(z_b, z_b)
    mixed = squared_distances(z_w, z_b)
    instance = (z_w - z_b).square().sum(1)
    return (weight * (instance + (same * (binary + mixed + mixed.T)).sum(1))).sum()


FORMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "class_sums": class_sums,
    "pairwise": pairwise,
}


def batch(n: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    z_b, z_w = torch.randn(2, n, DIM, generator=generator, dtype=dtype)
    labels = torch.randint(CLASSES, (n,), generator=generator)
    return z_b.requires_grad_(), z_w, labels


def step(form: str, data: tuple[Tensor, Tensor, Tensor]) -> float:
    """Seconds of one forward and backward."""
    data[0].grad = None
    start = time.perf_counter()
    FORMS[form](*data).backward()
    return time.perf_counter() - start


def time_both(n: int, seconds: float) -> dict[str, list[float]]:
    data = batch(n)
    times: dict[str, list[float]] = {form: [] for form in FORMS}
    for form in FORMS:
        step(form, data)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["pairwise"]) < 5:
        for form in FORMS:
            times[form].append(step(form, data))
    return times


def peak_mbytes(form: str, n: int) -> float:
    """Growth of the peak resident set by one step, measured in a process of its own."""
    command = [sys.executable, __file__, "--one", form, str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_kbytes() -> int:
    """Peak resident set of this process. Not getrusage, whose peak is inherited from the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def one(form: str, n: int) -> None:
    step(form, batch(16))  # loads kernels and thread pools, which are not the loss's memory
    data = batch(n)
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is resident now
    before = peak_kbytes()
    step(form, data)
    print((peak_kbytes() - before) / 1024)


def largest_disagreement() -> float:
    """Relative difference of the two forms in value and gradient, in float64."""
    values, grads = [], []
    for form in FORMS.values():
        data = batch(SIZES[1], torch.float64)
        value = form(*data)
        value.backward()
        values.append(value.detach())
        grads.append(data[0].grad)
    error = (grads[0] - grads[1]).abs().max() / grads[1].abs().max()
    return max((values[0] - values[1]).abs().item() / values[1].item(), error.item())


def measure(seconds: float) -> dict[str, object]:
    rows = []
    for n in SIZES:
        times = time_both(n, seconds)
        row: dict[str, float] = {"n": n}
        for form in FORMS:
            row[f"{form}_median_ms"] = 1e3 * statistics.median(times[form])
            row[f"{form}_min_ms"] = 1e3 * min(times[form])
            row[f"{form}_peak_mbytes"] = peak_mbytes(form, n)
        row["ratio_median"] = row["pairwise_median_ms"] / row["class_sums_median_ms"]
        row["ratio_min"] = row["pairwise_min_ms"] / row["class_sums_min_ms"]
        rows.append(row)
    far = {n: min(step("class_sums", data) for _ in range(7)) for n in FAR for data in [batch(n)]}
    return {
        "dim": DIM,
        "classes": CLASSES,
        "threads": THREADS,
        "torch": torch.__version__,
        "disagreement_float64": largest_disagreement(),
        "rows": rows,
        "class_sums_us_per_row": {n: 1e6 * seconds / n for n, seconds in far.items()},
    }


def show(report: dict) -> None:
    print(f"label-aware loss, forward and backward, D = {DIM}, {CLASSES} classes, {THREADS} thread")
    print(f"{'N':>6} {'':>11} {'class sums':>20} {'pairwise':>20} {'ratio':>8}")
    for row in report["rows"]:
        for name in ("median", "min"):
            ours, theirs = row[f"class_sums_{name}_ms"], row[f"pairwise_{name}_ms"]
            print(f"{row['n']:>6} {name + ' ms':>11} {ours:>20.2f} {theirs:>20.2f} {theirs / ours:>8.1f}")
        ours, theirs = row["class_sums_peak_mbytes"], row["pairwise_peak_mbytes"]
        print(f"{row['n']:>6} {'peak MB':>11} {ours:>20.1f} {theirs:>20.1f}")
    per_row = ", ".join(f"N = {n}: {us:.1f}" for n, us in report["class_sums_us_per_row"].items())
    print(f"class sums alone, microseconds per row (constant = linear growth): {per_row}")
    print(f"largest relative disagreement in float64: {report['disagreement_float64']:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=float, default=5.0, help="time to spend per batch size")
    parser.add_argument("--one", nargs=2, metavar=("FORM", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    if options.one:
        one(options.one[0], int(options.one[1]))
    elif options.json:
        print(json.dumps(measure(options.seconds), indent=2))
    else:
        show(measure(options.seconds))
