"""The line of metrics.jsonl that an epoch leaves: means over its images on all processes."""

import torch

from latentbit import distributed
from latentbit.runs.checkpoint import Position
from latentbit.training.evaluate import Scores


def add_step(sums: dict[str, float], terms: dict[str, float], correct: float, n: int, seconds: float) -> None:
    """Add what one step has to say to the sums of its epoch."""
    for name, value in terms.items():
        sums[name] = sums.get(name, 0.0) + value * n
    for name, value in (("correct", correct), ("images", n), ("seconds", seconds)):
        sums[name] = sums.get(name, 0.0) + value


def epoch_entry(
    epoch: int, position: Position, steps: int, lr: float, world: int, device: torch.device
) -> dict[str, float]:
    """The line of an epoch: means over its images on all processes."""
    names = sorted(position.sums)
    local = torch.tensor([position.sums[name] for name in names], dtype=torch.float32, device=device)
    sums = (
        dict(zip(names, distributed.sum_over_processes(local).tolist(), strict=True))
        if world > 1
        else position.sums
    )
    images, seconds = sums["images"], sums["seconds"] / world
    entry = {"epoch": epoch + 1, "steps": (epoch + 1) * steps, "lr": lr}
    entry |= {name: sums[name] / images for name in names if name not in ("correct", "images", "seconds")}
    entry["train_accuracy"] = sums["correct"] / images
    entry["seconds"], entry["images_per_second"] = seconds, images / max(1e-9, seconds)
    return entry


def score_entry(result: Scores) -> dict[str, float]:
    """Accuracies under the names that metrics.jsonl uses."""
    named = {"accuracy_b": result.binary, "accuracy_w": result.stale, "accuracy_w_dagger": result.latent}
    entry = {name: score.accuracy for name, score in named.items() if score is not None}
    if result.binary.in_top5 is not None:
        entry["top5_b"] = result.binary.in_top5 / result.binary.total
    return entry
