"""Makes a network of the zoo, its file and its card, from finished runs of one recipe with several seeds.

    python packaging/zoo.py runs/seed0 runs/seed1 runs/seed2 --name digits --summary "Handwritten digits, 8 x 8" \\
        --data "UCI digits: 1,437 images to learn from, 360 to test" --train "latentbit train digits_resnet18_compact"

The file is that of the first run, whatever its accuracy: choosing the best on test images would flatter it.
"""

import argparse
import dataclasses
import hashlib
import json
import platform
from pathlib import Path

import numpy as np

from latentbit import lbit, runs, zoo
from latentbit.analyze.over_seeds import Mean
from latentbit.atomic import atomic_write
from latentbit.engine import Engine
from latentbit.engine.speed import latency
from latentbit.lbit.sizes import weigh
from latentbit.packing.pack_run import pack_run
from latentbit.runs import RunDirectory
from latentbit.views.numbers import B

LICENCE = "Apache-2.0, as latentbit"
MOST = 1 << 20
"""Bytes of all networks together: the package stays small."""


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("runs", nargs="+", type=Path, help="finished runs that differ in their seed only")
    for name in ("name", "summary", "data", "train"):
        arguments.add_argument(f"--{name}", required=True, help=f"{name} of the card")
    given = arguments.parse_args()
    found = [runs.open(path) for path in given.runs]
    check_alike(found)
    packed = pack_run(given.runs[0], which="last").network
    content = lbit.to_bytes(packed)
    confusion = confusion_of(Engine(packed), found[0])
    accuracies = [last_accuracy(run) for run in found]
    mean = Mean.of(accuracies)
    sizes = weigh(packed)
    times = ", ".join(f"{latency(Engine(packed, threads=n)).least:.3f} ms on {n} thread(s)" for n in (1, 2))
    card = zoo.Card(
        name=given.name,
        summary=given.summary,
        data=given.data,
        licence=LICENCE,
        train=given.train,
        seeds=tuple(run.recipe().run.seed for run in found),
        accuracies=tuple(accuracies),
        mean=mean.value,
        half=mean.half,
        correct=int(confusion.trace()),
        total=int(confusion.sum()),
        classes=tuple(packed.classes or map(str, range(packed.n_outputs))),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion),
        file_bytes=len(content),
        fp32_bytes=sizes.fp32_bytes,
        speed=f"{times}, {cpu()}, least of a second of calls",
        sha256=hashlib.sha256(content).hexdigest(),
    )
    others = sum(zoo.file(name).stat().st_size for name in zoo.names() if name != given.name)
    if others + len(content) > MOST:
        raise SystemExit(f"the zoo would grow to {others + len(content):,} bytes; it has room for {MOST:,}")
    write(zoo.FOLDER / f"{given.name}.lbit", content)
    text = json.dumps(dataclasses.asdict(card), indent=1, ensure_ascii=False)
    write(zoo.FOLDER / f"{given.name}.json", (text + "\n").encode())
    print(card)


def check_alike(found: list[RunDirectory]) -> None:
    """Runs of one recipe, every one at its end."""
    recipes = [
        dataclasses.replace(recipe, name="", run=dataclasses.replace(recipe.run, seed=0))
        for recipe in (run.recipe() for run in found)
    ]
    for run, recipe in zip(found, recipes, strict=True):
        if recipe != recipes[0]:
            raise SystemExit(f"{run.path} has another recipe than {found[0].path}, beside the seed")
        if not run.finished:
            raise SystemExit(f"{run.path} is not at its end: latentbit train --resume {run.path}")


def last_accuracy(run: RunDirectory) -> float:
    return float(run.metrics()[-1][B.metric])


def confusion_of(engine: Engine, run: RunDirectory) -> np.ndarray:
    """Rows: the class of a test image; columns: what the engine takes it for."""
    n_classes = engine.network.n_outputs
    counts = np.zeros((n_classes, n_classes), np.int64)
    for images, labels in run.dataset().test_batches(100):
        np.add.at(counts, (labels.numpy(), engine(images.numpy()).argmax(1)), 1)
    return counts


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def write(path: Path, content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)


if __name__ == "__main__":
    main()
