"""The ImageNet recipe at its full size, rehearsed on generated pictures: JPEGs, shards, training, .lbit, engine.

    python bench/rehearsal.py WORK [--steps 200] [--batch 8] [--keep results/rehearsal] [KEY=VALUE]...

Ten classes of 500 x 375 JPEGs differ in the direction, width and colour of their stripes, under noise and patches that
mean nothing. They are put into shards, `imagenet_resnet18` is trained on random resized crops of them, packed, and the
engine's logits are compared with PyTorch's on every test image. What the dry run said of the time stands beside the
time that it took. WORK holds pictures, shards and run; the same command goes on with what is there.
"""

import argparse
import json
import math
import shutil
import time
from pathlib import Path

import numpy as np
from PIL import Image

from latentbit import lbit, recipes, runs
from latentbit.data import shard_writing
from latentbit.packing.pack_run import pack_run
from latentbit.training.plan import duration, plan
from latentbit.training.train import train

CLASSES, TRAIN, TEST = 10, 40, 10
WIDTH, HEIGHT = 500, 375
EPOCHS = 8
"""So many points of the loss curve, whatever the number of steps."""


def picture(label: int, random: np.random.Generator) -> Image.Image:
    """Stripes of a direction, width and colour that the class decides; all else is chance."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    angle = math.pi * label / CLASSES + random.normal(0, 0.05)
    period = 24.0 if label % 2 else 48.0
    wave = np.sin(
        2 * math.pi * (x * math.cos(angle) + y * math.sin(angle)) / period + random.uniform(0, 2 * math.pi)
    )
    hue = 2 * math.pi * ((label * 3) % CLASSES) / CLASSES
    colour = np.array([math.cos(hue), math.cos(hue - 2.1), math.cos(hue + 2.1)], np.float32)
    pixels = 128 + 50 * wave[:, :, None] * (0.6 + 0.4 * colour) + random.normal(0, 30, (HEIGHT, WIDTH, 3))
    for _ in range(6):  # patches, as things that stand in the way
        top, left = random.integers(0, HEIGHT - 60), random.integers(0, WIDTH - 60)
        pixels[top : top + 60, left : left + 60] = random.uniform(0, 255, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def make_pictures(root: Path, per_class: int) -> None:
    """train/ and val/ with a folder for each class; pictures that are there already stay."""
    for split, count in (("train", per_class), ("val", TEST)):
        for label in range(CLASSES):
            folder = root / split / f"class{label}"
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                path = folder / f"{i:04d}.jpg"
                if not path.exists():
                    random = np.random.default_rng([label, i, split == "val"])
                    picture(label, random).save(path, quality=90)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--keep", type=Path, help="Copy recipe, metrics and agreement here.")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    per_epoch = options.steps // EPOCHS
    make_pictures(options.work / "pictures", -(-per_epoch * options.batch // CLASSES))
    shard_writing.write(options.work / "pictures", options.work / "shards", 4_000_000)
    changes = [
        "dataset=shards",
        f"root={options.work / 'shards'}",
        "crop=random_resized",
        "crop_smallest=0.25",
        "brightness=0.2",
        f"batch_size={options.batch}",
        f"epochs={EPOCHS}",
        f"eval_every={EPOCHS}",
        "checkpoint_minutes=3",
        "recalibrate_batches=4",
        "workers=1",
        *options.overrides,
    ]
    place, recipe = options.work / "run", recipes.load("imagenet_resnet18", changes)
    whole = not place.exists()
    said = plan(recipe)
    print("\n".join(said), flush=True)
    begun = time.perf_counter()
    if runs.obtain(recipe, train, at=place) is None:
        return  # a signal came; the same command goes on
    if whole:
        took = f"took      {duration(time.perf_counter() - begun)}, evaluation included"
        (place / "dry_run.txt").write_text("\n".join([*said, took]) + "\n")
        print(took)
    packed = pack_run(place)
    lbit.write(packed.network, place / "model.lbit")
    (place / "packed.json").write_text(json.dumps(packed.as_dict(), indent=1) + "\n")
    losses = [entry["loss"] for entry in runs.open(place).metrics()]
    print(f"loss      {' '.join(f'{loss:.3f}' for loss in losses)}, means of {per_epoch} steps each")
    print(f"engine    {packed.with_torch}")
    print(f"accuracy  {packed.accuracy:.1%} of {packed.with_torch.n_images} test images")
    print(f"file      {(place / 'model.lbit').stat().st_size:,} bytes")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        for name in (
            "recipe.toml",
            "metrics.jsonl",
            "environment.json",
            "data.json",
            "packed.json",
            "dry_run.txt",
        ):
            if (place / name).is_file():
                shutil.copy(place / name, options.keep / name)


if __name__ == "__main__":
    main()
