"""A step on 1 to 256 workers: the model of latentbit.training.forecast, next to processes that were measured here.

    python bench/scaling.py [--steps 6] [--batch 16] [--json FILE]

Measured: `imagenet_resnet18` at 224 pixels on 1, 2 and 4 processes of one thread each, which share one batch and
exchange gradients over gloo on this machine; each process decodes its JPEGs itself. Apart from that one process times
its step and its input alone, and two and four time an all-reduce of as many bytes. The model gets these numbers and
the number of cores, and says what 1, 2 and 4 should take. Then it goes where nobody here can: GPUs of a given speed.
"""

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from latentbit import recipes
from latentbit.recipes.build import build_model, build_objective
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.forecast import Step, Work, Workers, step
from latentbit.training.measure import generated, measure_input
from latentbit.training.memory import keep_freed_memory
from latentbit.training.parallel import exchanged_bytes
from latentbit.training.state import TrainingState

RECIPE = "imagenet_resnet18"
CPU = torch.device("cpu")
PROCESSES = (1, 2, 4)
GPU, DECODED, NETWORKS = 1500.0, 450.0, {"10 Gbit/s": 1.25e9, "100 Gbit/s": 12.5e9}
"""Images per second of a device and of one core that decodes, and bytes per second of networks, to go on with. They
are examples: put in your own, or ask `latentbit train RECIPE --dry-run --devices N --device-speed S --bandwidth G`."""
CORES_OF_A_DEVICE = 8


def work(rank: int, world: int, batch: int, steps: int, folder: str) -> None:
    """One process: times of its steps, of a bare all-reduce of the gradients, and, alone, of its input."""
    keep_freed_memory()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet{world}", rank=rank, world_size=world)
    recipe = recipes.load(RECIPE, [f"batch_size={batch}", "device=cpu", "compile=off", "workers=0"])
    with generated(recipe.data, CPU) as dataset:
        facts = DatasetFacts.of(dataset)
        state = TrainingState(recipe, facts, CPU, 100)
        state.begin_epoch()
        found: dict[str, object] = {}
        if world == 1:
            found["input"] = measure_input(dataset, batch, seed=0)
            found["bytes"] = exchanged_bytes(state.objective, batch, synced=False)
        batches = dataset.train_batches(0, batch_size=batch, seed=0, rank=rank, world=world)
        held = next(batches)
        gradients = torch.zeros(sum(p.numel() for p in state.objective.parameters() if p.requires_grad))

        def one(images: torch.Tensor, labels: torch.Tensor) -> None:
            state.step(images, labels)
            state.meter.read_latest()

        one(*held)  # takes its memory
        found["computed"] = timed(lambda: one(*held), steps)
        found["whole"] = timed(lambda: one(*next(batches)), steps)
        found["reduced"] = timed(lambda: dist.all_reduce(gradients), steps)
    Path(folder, f"{world}-{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def timed(call: Callable[[], object], times: int) -> list[tuple[float, float]]:
    """Seconds by the clock, and of the cores that this process used."""
    found = []
    for _ in range(times):
        dist.barrier()
        clock, cores = time.perf_counter(), time.process_time()
        call()
        found.append((time.perf_counter() - clock, time.process_time() - cores))
    return found


def measured(batch: int, steps: int) -> dict[int, list[dict]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for world in PROCESSES:
            print(f"timing {world} of {PROCESSES[-1]} processes", flush=True)
            mp.spawn(work, (world, batch, steps, folder), nprocs=world)
            files = [Path(folder, f"{world}-{rank}.json") for rank in range(world)]
            found[world] = [json.loads(file.read_text()) for file in files]
    return found


def least(results: list[dict], key: str, which: int) -> float:
    """The best step of all: everybody waits for the slowest process, so the slowest of each step counts."""
    steps = zip(*(result[key] for result in results), strict=True)
    return min(max(times[which] for times in step) for step in steps)


CLOCK, CORES = 0, 1


def compare(found: dict[int, list[dict]], batch: int, cores: int) -> list[str]:
    """The model on what one process measured, next to the others, in seconds of the slowest process.

    In seconds of cores, which other work on the machine does not lengthen, and by the clock, which it does. Processes
    beyond the number of cores share them. Nothing hides the all-reduce: the core that computes also adds up. And the
    process that computes also decodes, so input adds to compute.
    """
    gradients, rest = found[1][0]["bytes"]
    decoded = found[1][0]["input"]
    lines = [
        f"one process: {batch / least(found[1], 'computed', CORES):.2f} images/s of a step, {decoded:.0f} of input; "
        f"{gradients / 1e6:.1f} MB of gradients, {rest / 1e3:.0f} kB of losses; batch {batch}, {cores} cores",
        f"{'':<10}{'seconds of a core':>36}{'by the clock':>36}",
        f"{'processes':<10}" + 2 * f"{'modelled':>12}{'measured':>12}{'ratio':>12}",
    ]
    for world in PROCESSES:
        line = f"{world:<10}"
        for which in (CORES, CLOCK):
            share = min(1.0, cores / world) if which == CLOCK else 1.0
            both = 1 / (least(found[1], "computed", which) / batch + 1 / decoded)
            reduce = least(found[world], "reduced", which) if world > 1 else 0.0
            bandwidth = 2 * (world - 1) / world * gradients / reduce if world > 1 else math.inf
            modelled = step(
                Work(batch, gradients, rest), Workers(world, share * both, math.inf, bandwidth, 0.0)
            )
            seconds, took = modelled.compute + modelled.reduce, least(found[world], "whole", which)
            line += f"{seconds:>12.2f}{took:>12.2f}{seconds / took:>12.2f}"
        lines.append(line)
    return lines


def simulate() -> list[str]:
    """The network with the classes of ImageNet: 256 images a step as its recipe has them, and 256 for each worker."""
    recipe = recipes.load(RECIPE)
    objective = build_objective(recipe.loss, build_model(recipe, 1000, 3), 1000)
    gradients, rest = exchanged_bytes(objective, 256, synced=False)
    lines = ["", f"1000 classes: {gradients / 1e6:.1f} MB of gradients, {rest / 1e6:.1f} MB of losses"]
    for title, images in (
        ("256 images a step in all", lambda n: 256),
        ("256 images a worker", lambda n: 256 * n),
    ):
        for name, bandwidth in NETWORKS.items():
            lines += [
                "",
                f"{title}; {name}; a device makes {GPU:,.0f} images/s, each of its {CORES_OF_A_DEVICE} cores "
                f"{DECODED:.0f}",
                f"{'workers':<9}{'ms a step':>10}{'compute':>9}{'input':>8}{'reduce':>8}{'waited':>8}"
                f"{'images/s':>11}{'of ideal':>10}  bound by",
            ]
            for n in (1, 2, 4, 8, 16, 32, 64, 128, 256):
                found: Step = step(
                    Work(images(n), gradients, rest),
                    Workers(n, GPU, CORES_OF_A_DEVICE * DECODED, bandwidth),
                )
                ms = [
                    1000 * s for s in (found.seconds, found.compute, found.input, found.reduce, found.waited)
                ]
                rate = images(n) / found.seconds
                lines.append(
                    f"{n:<9}{ms[0]:>10.1f}{ms[1]:>9.1f}{ms[2]:>8.1f}{ms[3]:>8.1f}{ms[4]:>8.1f}{rate:>11,.0f}"
                    f"{rate / (n * GPU):>10.0%}  {found.bound_by}"
                )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measured(options.batch, options.steps)
    print("\n".join(compare(found, options.batch, os.cpu_count() or 1)))
    print("\n".join(simulate()))
    if options.json:
        options.json.write_text(
            json.dumps({"batch": options.batch, "torch": torch.__version__, "seconds": found})
        )


if __name__ == "__main__":
    main()
