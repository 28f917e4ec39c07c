"""Sums over the images of an epoch, kept on the device, and the line of metrics.jsonl that they become."""

import math

import torch
from torch import Tensor

from latentbit import distributed
from latentbit.objective import Outcome
from latentbit.training.evaluate import Scores


class Meter:
    """Adds up loss terms and correct answers. Adding does not wait for the device; reading does.

    The sums stay on the device for the whole epoch, so that they are the same whenever they are read or saved.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.dtype = torch.float32 if device.type == "mps" else torch.float64
        self.names: tuple[str, ...] = ()
        self.sums = torch.zeros(0, dtype=self.dtype, device=device)
        self.latest = self.sums
        """Terms of the last step."""
        self.first_bad = torch.zeros(0, dtype=self.dtype, device=device)
        """Number and terms of the first step whose loss is not finite; number -1 while there is none."""

    def add(self, outcome: Outcome, labels: Tensor, step: int) -> None:
        """What one forward has to say; `step` counts from 0 and is told if its loss is not finite."""
        names = ("loss", *outcome.terms)
        n = len(labels)
        with torch.no_grad():
            terms = torch.stack([outcome.loss.detach(), *outcome.terms.values()]).to(self.dtype)
            correct = (outcome.logits.detach().argmax(1) == labels).sum().to(self.dtype)
            row = torch.cat([terms * n, correct[None], correct.new_full((1,), n)])
            if not self.names:
                self._begin(names)
            self.sums = self.sums + row
            self.latest = terms
            bad = torch.cat([terms.new_full((1,), step), terms])
            first = ~torch.isfinite(terms[0]) & (self.first_bad[0] < 0)
            self.first_bad = torch.where(first, bad, self.first_bad)

    def _begin(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = torch.zeros(len(names) + 2, dtype=self.dtype, device=self.device)
        self.first_bad = torch.full((len(names) + 1,), -1.0, dtype=self.dtype, device=self.device)

    def read(self) -> dict[str, float]:
        """The sums so far: every term times its images, correct answers, images."""
        return dict(zip((*self.names, "correct", "images"), self.sums.tolist(), strict=False))

    def read_latest(self) -> dict[str, float]:
        """The terms of the last step."""
        return dict(zip(self.names, self.latest.tolist(), strict=False))

    def read_first_bad(self) -> tuple[int, dict[str, float]] | None:
        """Number and terms of the first step whose loss was not finite."""
        if not self.names or math.isfinite(float(self.sums[0])):
            return None
        step, *terms = self.first_bad.tolist()
        return int(step), dict(zip(self.names, terms, strict=True))

    def restore(self, sums: dict[str, float]) -> None:
        """Go on from sums that were read before."""
        names = tuple(name for name in sums if name not in ("correct", "images", "seconds"))
        if names:
            self._begin(names)
            values = [sums[name] for name in (*names, "correct", "images")]
            self.sums = torch.tensor(values, dtype=self.dtype, device=self.device)


def epoch_entry(
    epoch: int, sums: dict[str, float], seconds: float, steps: int, lr: float, device: torch.device
) -> dict[str, float]:
    """The line of an epoch, counted from 0: means over its images on all processes."""
    names = sorted(sums)
    world = distributed.world_size()
    if world > 1:
        local = torch.tensor([*(sums[name] for name in names), seconds], dtype=torch.float32, device=device)
        *values, seconds = distributed.sum_over_processes(local).tolist()
        sums = dict(zip(names, values, strict=True))
    images, seconds = sums["images"], seconds / world
    entry = {"epoch": epoch + 1, "steps": (epoch + 1) * steps, "lr": lr}
    entry |= {name: sums[name] / images for name in names if name not in ("correct", "images")}
    entry["train_accuracy"] = sums["correct"] / images
    entry["seconds"], entry["images_per_second"] = seconds, images / max(1e-9, seconds)
    return entry


def score_entry(result: Scores) -> dict[str, float]:
    """Accuracies under the names that metrics.jsonl uses."""
    entry = {number.metric: score.accuracy for number, score in result.named().items()}
    if result.binary.in_top5 is not None:
        entry["top5_b"] = result.binary.in_top5 / result.binary.total
    return entry
