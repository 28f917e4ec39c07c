"""Time of one training step of compact ResNet-18, batch 128: ours against a plain eager implementation.

    python bench/train_step.py [--rounds 30] [--threads 2] [--only "ours baseline" "ours joint"] [--json FILE]

    ours baseline        the step of `latentbit train` without a latent loss, compiled
    ours label_aware     the same with the latent view and the label-aware loss
    ours joint           both views with gradient, and the soft labels of the latent one: a graph for each view
    joint in one graph   the same, both views compiled together
    memory given back    ours baseline, but the C library returns freed memory to the system, as it does by default
    channels first       ours baseline, but images keep the usual order in memory
    0.1.0 baseline       both of the last two: the step as latentbit 0.1.0 ran it
    eager baseline       binary layers in plain eager PyTorch
    eager label_aware    a second forward with W, and the pairwise loss over the N x N distances, eager

Each runs in a process of its own. They take turns, one step each per round, in random order; the ratios are of
medians and of minima. Evaluation is timed too: B alone, and all three numbers, over 2,560 images.
"""

import argparse
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import TwoView, binarize_, models, recipes
from latentbit.data.in_memory import InMemory, Pixels
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.evaluate import scores
from latentbit.training.memory import keep_freed_memory
from latentbit.training.state import TrainingState

BATCH, TEST = 128, 2560
CPU = torch.device("cpu")
FACTS = DatasetFacts("noise", tuple("0123456789"), 3, 32, (0.5,) * 3, (0.5,) * 3, 50_000, TEST, "")
Call = Callable[[], object]


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))


def ours(form: str, channels_last: bool = True, apart: bool = True) -> Call:
    """A step of cifar10_resnet18_compact_<form>."""
    recipe = recipes.load(f"cifar10_resnet18_compact_{form}")
    state = TrainingState(recipe, FACTS, CPU, FACTS.n_train // BATCH, compiled=True)
    if not channels_last:
        state.layout = torch.contiguous_format
    if not apart:
        state.objective.network.compiled_apart = False
    state.begin_epoch()
    images, labels = batch()
    return lambda: state.step(images, labels)


def noise() -> InMemory:
    images = torch.randint(256, (50_000, 3, 32, 32), dtype=torch.uint8)
    train = Pixels(images, torch.randint(10, (50_000,)))
    test = Pixels(images[:TEST], train.labels[:TEST])
    return InMemory("noise", train, test, FACTS.classes, FACTS.mean, FACTS.std, pad=2, flip=True)


def evaluation(only_binary: bool) -> Call:
    dataset, model = noise(), network()
    return lambda: scores(model, dataset, batch_size=BATCH, only_binary=only_binary)


def input_pipeline() -> Call:
    """One augmented batch of 50,000 random CIFAR-sized images."""
    batches = noise().train_batches(0, batch_size=BATCH, seed=0)
    return lambda: next(batches)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    model = models.create("resnet18_compact")
    binarize_(model)
    return model


def pairwise(z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
    """The label-aware loss as printed, over all pairs."""
    same = (labels[:, None] == labels[None, :]).float()
    same.fill_diagonal_(0)
    partners = same.sum(1)
    k = 1 / ((3 * partners + 1) * z_b.shape[1])
    square = lambda a, b: (a[:, None, :] - b[None, :, :]).square().sum(2)  # noqa: E731
    category = (same * (square(z_b, z_b) + square(z_w, z_b) + square(z_b, z_w))).sum(1)
    return (k * ((z_w - z_b).square().sum(1) + category)).sum()


def eager(latent: bool) -> Call:
    model = network()
    images, labels = batch()
    if not latent:
        optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=1e-6)

        def baseline() -> None:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return baseline
    # The pipeline of the paper's Fig. 2: both forwards build a graph, the latent features are detached.
    views, projection = TwoView(model, latent_grad=True), torch.nn.Linear(64, 32)
    both = torch.optim.Adam([*views.parameters(), *projection.parameters()], 5e-3, weight_decay=1e-6)

    def step() -> None:
        out = views(images)
        z_b = F.normalize(projection(out.features), dim=1)
        z_w = F.normalize(projection(out.latent_features), dim=1).detach()
        loss = F.cross_entropy(out.logits, labels) + 1e-4 * pairwise(z_b, z_w, labels)
        both.zero_grad()
        loss.backward()
        both.step()

    return step


CANDIDATES: dict[str, tuple[bool, Callable[[], Call]]] = {
    "ours baseline": (True, lambda: ours("baseline")),
    "ours label_aware": (True, lambda: ours("label_aware")),
    "ours joint": (True, lambda: ours("joint")),
    "joint in one graph": (True, lambda: ours("joint", apart=False)),
    "memory given back": (False, lambda: ours("baseline")),
    "channels first": (True, lambda: ours("baseline", channels_last=False)),
    "0.1.0 baseline": (False, lambda: ours("baseline", channels_last=False)),
    "eager baseline": (False, lambda: eager(latent=False)),
    "eager label_aware": (False, lambda: eager(latent=True)),
    "input pipeline": (True, input_pipeline),
    "evaluation, B": (True, lambda: evaluation(only_binary=True)),
    "evaluation, all three": (True, lambda: evaluation(only_binary=False)),
}
"""Whether freed memory is kept, and what to time."""


def work(name: str, threads: int, parent: Connection) -> None:
    """The process of one candidate: a call and its time whenever the parent asks."""
    keeps, make = CANDIDATES[name]
    if keeps:
        keep_freed_memory()
    torch.set_num_threads(threads)
    call = make()
    for _ in range(3):
        call()
    parent.send(None)
    while parent.recv():
        start = time.perf_counter()
        call()
        parent.send(1e3 * (time.perf_counter() - start))


def measure(chosen: list[str], rounds: int, threads: int) -> dict[str, list[float]]:
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for name in chosen:
        print(f"warming up {name}", flush=True)
        pipes[name], theirs = context.Pipe()
        context.Process(target=work, args=(name, threads, theirs), daemon=True).start()
        pipes[name].recv()
    print(f"{rounds} rounds", flush=True)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name in random.sample(chosen, len(chosen)):
            pipes[name].send(True)
            times[name].append(pipes[name].recv())
    for pipe in pipes.values():
        pipe.send(False)
    return times


RATIOS = {
    "0.1.0 / ours, baseline (aim 1.4)": ("0.1.0 baseline", "ours baseline"),
    "memory given back / ours, baseline": ("memory given back", "ours baseline"),
    "channels first / ours, baseline": ("channels first", "ours baseline"),
    "label_aware / baseline, ours (aim <= 1.20, paper 1.33)": ("ours label_aware", "ours baseline"),
    "joint / baseline, ours": ("ours joint", "ours baseline"),
    "joint in one graph / a graph for each view": ("joint in one graph", "ours joint"),
    "label_aware / baseline, eager": ("eager label_aware", "eager baseline"),
    "eager / ours, label_aware (aim >= 1.7)": ("eager label_aware", "ours label_aware"),
    "eager / ours, baseline": ("eager baseline", "ours baseline"),
    "input pipeline / ours baseline (aim < 0.05)": ("input pipeline", "ours baseline"),
    "evaluation, all three / B alone": ("evaluation, all three", "evaluation, B"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=CANDIDATES,
        default=list(CANDIDATES),
        metavar="NAME",
        help="of those above",
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = options.only
    times = measure(chosen, options.rounds, options.threads)
    median = {name: statistics.median(values) for name, values in times.items()}
    least = {name: min(values) for name, values in times.items()}
    print(f"\n{'':<24}{'median ms':>10}{'min ms':>10}   ({options.threads} threads, batch {BATCH})")
    for name in chosen:
        print(f"{name:<24}{median[name]:>10.2f}{least[name]:>10.2f}")
    print(f"\n{'ratio':<56}{'of medians':>12}{'of minima':>12}")
    for name, (a, b) in RATIOS.items():
        if a not in chosen or b not in chosen:
            continue
        print(f"{name:<56}{median[a] / median[b]:>12.3f}{least[a] / least[b]:>12.3f}")
    if options.json:
        facts = {
            "threads": options.threads,
            "batch": BATCH,
            "torch": torch.__version__,
            "milliseconds": times,
        }
        options.json.write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
