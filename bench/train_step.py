"""Time of one training step of compact ResNet-18, batch 128: ours against a plain eager implementation.

    python bench/train_step.py [--rounds 30] [--threads 2] [--json FILE]

    ours baseline       Objective without a latent loss, compiled, as latentbit train runs it
    ours label_aware    the same with the latent view and the label-aware loss
    eager baseline      binary layers in plain eager PyTorch
    eager label_aware   a second forward with W, and the pairwise loss over the N x N distances, eager

Candidates take turns, one step each per round, in random order; the ratios are of medians and of minima.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import Objective, TwoView, binarize_, data, models, recipes
from latentbit.training import optimizers

BATCH = 128
Step = Callable[[Tensor, Tensor], None]


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    model = models.create("resnet18_compact")
    binarize_(model)
    return model


def ours(latent: str, compiled: bool) -> Step:
    objective = Objective(network(), num_classes=10, latent=latent)
    optimizer = optimizers.create(objective, recipes.Optim())
    forward = torch.compile(objective) if compiled else objective

    def step(images: Tensor, labels: Tensor) -> None:
        outcome = forward(images, labels)
        optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()
        optimizer.step()

    return step


def pairwise(z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
    """Eq. 5 as printed, over all pairs."""
    same = (labels[:, None] == labels[None, :]).float()
    same.fill_diagonal_(0)
    partners = same.sum(1)
    k = 1 / ((3 * partners + 1) * z_b.shape[1])
    square = lambda a, b: (a[:, None, :] - b[None, :, :]).square().sum(2)  # noqa: E731
    category = (same * (square(z_b, z_b) + square(z_w, z_b) + square(z_b, z_w))).sum(1)
    return (k * ((z_w - z_b).square().sum(1) + category)).sum()


def eager(latent: bool) -> Step:
    model = network()
    if not latent:
        optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=1e-6)

        def baseline(images: Tensor, labels: Tensor) -> None:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return baseline
    # The pipeline of the paper's Fig. 2: both forwards build a graph, the latent features are detached.
    views, projection = TwoView(model, latent_grad=True), torch.nn.Linear(64, 32)
    both = torch.optim.Adam([*views.parameters(), *projection.parameters()], 5e-3, weight_decay=1e-6)

    def step(images: Tensor, labels: Tensor) -> None:
        out = views(images)
        z_b = F.normalize(projection(out.features), dim=1)
        z_w = F.normalize(projection(out.latent_features), dim=1).detach()
        loss = F.cross_entropy(out.logits, labels) + 1e-4 * pairwise(z_b, z_w, labels)
        both.zero_grad()
        loss.backward()
        both.step()

    return step


def input_pipeline() -> Callable[[], None]:
    """One augmented batch of 50,000 random CIFAR-sized images."""
    from latentbit.data.in_memory import InMemory, Split

    images = torch.randint(256, (50_000, 3, 32, 32), dtype=torch.uint8)
    split = Split(images, torch.randint(10, (50_000,)))
    half = (0.5, 0.5, 0.5)
    dataset: data.Dataset = InMemory(
        "random", split, split, tuple("0123456789"), half, half, pad=2, flip=True
    )
    batches = dataset.train_batches(0, batch_size=BATCH, seed=0)
    return lambda: next(batches) and None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    candidates: dict[str, Step] = {
        "ours baseline": ours("none", compiled=True),
        "ours label_aware": ours("label_aware", compiled=True),
        "eager baseline": eager(latent=False),
        "eager label_aware": eager(latent=True),
    }
    calls: dict[str, Callable[[], None]] = {n: lambda s=s: s(images, labels) for n, s in candidates.items()}
    calls["input pipeline"] = input_pipeline()
    for name, call in calls.items():
        print(f"warming up {name}", flush=True)
        for _ in range(3):
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name in random.sample(sorted(calls), len(calls)):
            start = time.perf_counter()
            calls[name]()
            times[name].append(1e3 * (time.perf_counter() - start))
    median = {name: statistics.median(values) for name, values in times.items()}
    least = {name: min(values) for name, values in times.items()}
    print(
        f"\n{'':<20}{'median ms':>10}{'min ms':>10}{'images/s':>10}   ({options.threads} threads, batch {BATCH})"
    )
    for name in calls:
        print(f"{name:<20}{median[name]:>10.2f}{least[name]:>10.2f}{1e3 * BATCH / median[name]:>10.0f}")
    ratios = {
        "label_aware / baseline, ours (aim <= 1.20, paper 1.33)": ("ours label_aware", "ours baseline"),
        "label_aware / baseline, eager": ("eager label_aware", "eager baseline"),
        "eager / ours, label_aware (aim >= 1.7)": ("eager label_aware", "ours label_aware"),
        "eager / ours, baseline": ("eager baseline", "ours baseline"),
        "input pipeline / ours baseline (aim < 0.05)": ("input pipeline", "ours baseline"),
    }
    print(f"\n{'ratio':<56}{'of medians':>12}{'of minima':>12}")
    for name, (a, b) in ratios.items():
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
