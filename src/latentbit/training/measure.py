"""What a training costs on this machine, measured on a small part of it: input, steps, memory.

Steps are made on random images in a state that is thrown away. What else runs on the machine only adds to a time, so
the least of several counts.
"""

import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from latentbit import data
from latentbit.data import Dataset
from latentbit.recipes import Data
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.layout import in_layout
from latentbit.training.state import TrainingState

SECONDS = 1.0
"""About how long a timed step may take, and a window of timed input."""
FEWEST = 8
"""Images of a timed step, however long it takes: with fewer the update of the weights would count too much."""
TIMED = 3
"""Steps and windows that are timed."""
WIDTH, HEIGHT, QUALITY = 500, 375, 90
"""Of generated pictures: the middle of ImageNet's sizes, in files of about 100 kB."""
DISTINCT, PICTURES = 16, 1024


@dataclass(frozen=True)
class Speed:
    """Images per second."""

    step: float
    """Of a training step: forward, backward, update."""
    forward: float
    """Of an evaluation."""
    batch: int
    """Images that were computed at once."""


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    weights: int
    """And statistics."""
    gradients: int
    optimizer: int
    average: int
    activations: float
    """For each image, kept for the backward."""
    fixed: float
    """Kept whatever the number of images."""

    def total(self, images: int) -> float:
        """With so many images computed at once."""
        held = self.weights + self.gradients + self.optimizer + self.average
        return held + self.fixed + images * self.activations


def measure_speed(state: TrainingState, facts: DatasetFacts, most: int) -> Speed:
    """Of a state that is not needed any more, on images for about a second, at least 8 and at most `most`."""
    state.begin_epoch()
    _seconds(state, 2, facts)  # the first step takes its memory
    few = min(most, FEWEST)
    short, long = _least(state, 2, facts), _least(state, few, facts)
    batch = _affordable(few, long, (long - short) / max(1, few - 2), most)
    least = long if batch == few else _least(state, batch, facts)
    network, times = state.model.eval(), []
    images = in_layout(_random(batch, facts, state.device)[0], state.layout)
    with torch.no_grad():
        for _ in range(TIMED):
            begun = time.perf_counter()
            float(network(images).sum())  # waits for the device
            times.append(time.perf_counter() - begun)
    return Speed(batch / least, batch / min(times), batch)


def _affordable(few: int, seconds: float, each: float, most: int) -> int:
    """Images of a step that takes about SECONDS, if `few` take so long and one more `each`. In a small network steps of
    two and of eight take the same time: then as many as the training has."""
    if seconds + each * (most - few) <= SECONDS or each <= 0:
        return most
    return few + max(0, int((SECONDS - seconds) / each))


def _least(state: TrainingState, n: int, facts: DatasetFacts) -> float:
    return min(_seconds(state, n, facts) for _ in range(TIMED))


def _seconds(state: TrainingState, n: int, facts: DatasetFacts) -> float:
    images, labels = _random(n, facts, state.device)
    begun = time.perf_counter()
    state.step(images, labels)
    state.meter.read_latest()  # waits for the device
    return time.perf_counter() - begun


def _random(n: int, facts: DatasetFacts, device: torch.device) -> tuple[Tensor, Tensor]:
    images = torch.randn(n, *facts.input_shape, device=device)
    return images, torch.randint(facts.num_classes, (n,), device=device)


def measure_memory(state: TrainingState, facts: DatasetFacts) -> Memory:
    """Of a state that has made a step. Activations: on two and four images, and a line through both."""
    two, four = (_kept(state, *_random(n, facts, state.device)) for n in (2, 4))
    each = (four - two) / 2
    objective = state.objective
    trained = [p for p in objective.parameters() if p.requires_grad]
    states = {id(t): t for entry in state.optimizer.state.values() for t in entry.values()}
    average = state.average
    return Memory(
        weights=sum(t.nbytes for t in (*objective.parameters(), *objective.buffers())),
        gradients=sum(p.nbytes for p in trained),
        optimizer=sum(t.nbytes for t in states.values() if isinstance(t, Tensor)),
        average=0 if average is None else sum(t.nbytes for t in (*average.parameters(), *average.buffers())),
        activations=each,
        fixed=max(0.0, two - 2 * each),
    )


def _kept(state: TrainingState, images: Tensor, labels: Tensor) -> int:
    """Bytes that autograd keeps for the backward, each storage once, weights left out."""
    objective = state.objective.train()
    own = {p.untyped_storage().data_ptr() for p in (*objective.parameters(), *objective.buffers())}
    found: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        outcome = state.outcome_of(in_layout(images, state.layout), labels)
    total = sum(found.values())
    del outcome
    return total


def measure_input(dataset: Dataset, batch_size: int, seed: int) -> float:
    """Images per second that the data set brings, decoded, cut and normalised; the best of several windows."""
    # Small batches, so that few wait in workers when the time begins; the first of all is not timed.
    size = max(1, min(batch_size, 32, (len(dataset.train) - dataset.n_val) // 8))
    batches = dataset.train_batches(0, batch_size=size, seed=seed)
    next(batches)
    rates: list[float] = []
    begun, n = time.perf_counter(), 0
    for images, _ in batches:
        n += len(images)
        passed = time.perf_counter() - begun
        if passed > SECONDS:
            rates.append(n / passed)
            if len(rates) == TIMED:
                break
            begun, n = time.perf_counter(), 0
    return max(rates) if rates else n / (time.perf_counter() - begun)


def is_absent(wanted: Data) -> bool:
    """Whether this is a folder of images that is not on this machine."""
    if wanted.dataset not in ("image_folder", "shards"):
        return False
    return not wanted.root or not Path(wanted.root).expanduser().exists()


@contextmanager
def generated(wanted: Data, device: torch.device) -> Iterator[Dataset]:
    """A folder of pictures in place of one that is not here, read as the recipe would read its own."""
    with tempfile.TemporaryDirectory() as folder:
        _write_pictures(Path(folder))
        yield data.open(dataclasses.replace(wanted, dataset="image_folder", root=folder, val=0.0), device)


def _write_pictures(root: Path) -> None:
    """A few JPEGs under many names, soft shapes under fine noise."""
    random = np.random.default_rng(0)
    for i in range(PICTURES):
        for split in ("train", "val") if i < DISTINCT else ("train",):
            path = root / split / f"class{i % 2}" / f"{i:04d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            if i >= DISTINCT:
                os.link(root / "train" / f"class{i % DISTINCT % 2}" / f"{i % DISTINCT:04d}.jpg", path)
                continue
            coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
            soft = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.float32)
            noisy = soft + random.normal(0, 10, soft.shape)
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, quality=QUALITY)
