"""Images per second and core that reach the trainer: ours, a plain Pillow and DataLoader loop, what else is installed.

    python bench/input.py                          a table
    python bench/input.py --json                   the same numbers for programs
    python bench/input.py --memory 20000           memory of a worker over an epoch of so many JPEGs
    python bench/input.py --pictures DIR           only make the pictures, in train/ and val/ with ten classes each

Every way has one worker and ends with normalised float32 batches of 64 in the trainer: random resized crops to 224
pixels, half of them mirrored. Ours normalises in the trainer, the others in the worker, as is usual; "ours, bytes"
stops before that, which is a GPU's part where there is one. Counted is the CPU time of both processes, so that waiting
for a core does not count. Ways take turns, and the best of all rounds is shown. Pictures are noise of many octaves
with the number of their class in it.
"""

import argparse
import io
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.utils import data as torch_data

from latentbit import data, recipes
from latentbit.data import decode, shard_writing
from latentbit.training.memory import keep_freed_memory

SIZE, BATCH = 224, 64
MEAN, STD = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
SHAPES = {"500 x 375": (500, 375), "1500 x 1125": (1500, 1125)}


def picture(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """Octaves of noise, mostly grey as photographs are."""
    total = np.zeros((height, width, 3), np.float32)
    for octave in range(1, 10):
        rows, columns = min(height, 2**octave), min(width, 2**octave)
        grey = rng.normal(size=(rows, columns, 1)) + 0.4 * rng.normal(size=(rows, columns, 3))
        for channel in range(3):
            coarse = Image.fromarray((grey[..., channel] * 2 ** (-0.35 * octave)).astype(np.float32))
            total[..., channel] += np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    total *= 55 / total.std()
    return Image.fromarray((118 + total).clip(0, 255).astype(np.uint8))


def numbered(image: Image.Image, number: int, rng: np.random.Generator) -> Image.Image:
    """The class of an image, written large into it: something to see, and to learn."""
    side = min(image.size)
    size = int(side * rng.uniform(0.5, 0.9))
    left, top = rng.integers(0, image.width - size // 2), rng.integers(-size // 8, side - size + 1)
    colour = tuple(rng.integers(0, 256, 3).tolist())
    ImageDraw.Draw(image).text((int(left), int(top)), str(number), colour, ImageFont.load_default(size))
    return image


def make_pictures(root: Path, count: int, shape: tuple[int, int], distinct: int = 64) -> float:
    """JPEGs in train/ and val/, ten classes each, and their mean number of bytes; only `distinct` are drawn anew.

    The others are those shifted in a circle, which makes other files of the same kind.
    """
    rng = np.random.default_rng(0)
    drawn = [np.asarray(picture(rng, *shape)) for _ in range(min(distinct, count))]
    sizes = []
    for split, n_images in (("train", count), ("val", 20)):
        for i in range(n_images):
            path = root / split / f"class{i % 10}" / f"{i:06d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            shifted = np.roll(drawn[i % len(drawn)], rng.integers(0, shape[0]), axis=1)
            numbered(Image.fromarray(shifted), i % 10, rng).save(path, quality=90)
            sizes.append(path.stat().st_size)
    return float(np.mean(sizes))


def box(width: int, height: int) -> tuple[int, int, int, int]:
    """A random resized crop, as everyone draws it."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if wide <= width and high <= height:
            left, top = random.randint(0, width - wide), random.randint(0, height - high)
            return left, top, left + wide, top + high
    return 0, 0, width, height


def finished(image: Image.Image) -> Tensor:
    """Crop, scale, mirror and normalise an image of Pillow."""
    image = image.crop(box(*image.size)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    planes = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
    return planes.float().div(255).sub_(MEAN).div_(STD)


class Plain(torch_data.Dataset):
    """What a page of PyTorch code does."""

    def __init__(self, root: Path) -> None:
        self.paths = sorted(map(str, (root / "images" / "train").rglob("*.jpg")))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with open(self.paths[index], "rb") as file:
            return finished(Image.open(file).convert("RGB")), index % 10


class OpenCV(Plain):
    """cv2 decodes and scales, without a filter against aliasing."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        import cv2

        pixels = cv2.cvtColor(cv2.imread(self.paths[index]), cv2.COLOR_BGR2RGB)
        left, top, right, bottom = box(pixels.shape[1], pixels.shape[0])
        scaled = cv2.resize(pixels[top:bottom, left:right], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
        if random.random() < 0.5:
            scaled = cv2.flip(scaled, 1)
        planes = torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))
        return planes.float().div(255).sub_(MEAN).div_(STD), index % 10


class Torchvision(Plain):
    """The transforms of torchvision's reference script."""

    def __init__(self, root: Path) -> None:
        from torchvision import transforms

        super().__init__(root)
        steps = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        self.transform = transforms.Compose(
            [*steps, transforms.Normalize(MEAN.flatten().tolist(), STD.flatten().tolist())]
        )

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with open(self.paths[index], "rb") as file:
            return self.transform(Image.open(file).convert("RGB")), index % 10


def from_folder(kind: type[Plain]) -> Callable[[Path], Iterator]:
    def batches(root: Path) -> Iterator:
        return iter(torch_data.DataLoader(kind(root), BATCH, shuffle=True, num_workers=1, drop_last=True))

    return batches


def from_webdataset(root: Path) -> Iterator:
    import webdataset

    tars = sorted(map(str, (root / "shards").glob("train-*.tar")))
    stream = webdataset.WebDataset(tars, shardshuffle=False, empty_check=False).shuffle(500)
    samples = stream.map(lambda s: (finished(Image.open(io.BytesIO(s["jpg"])).convert("RGB")), int(s["cls"])))
    return iter(torch_data.DataLoader(samples, BATCH, num_workers=1, drop_last=True))


def ours(dataset: str, **options: object) -> Callable[[Path], Iterator]:
    def batches(root: Path) -> Iterator:
        folder = root / ("shards" if dataset == "shards" else "images")
        chosen = {"crop": "random_resized", "flip": True, "workers": 1, **options}
        opened = data.open(recipes.Data(dataset=dataset, root=str(folder), **chosen))  # type: ignore[arg-type]
        return opened.train_batches(0, batch_size=BATCH, seed=0)

    return batches


def for_a_gpu(root: Path) -> Iterator:
    """All that is left to the CPUs of a machine with a GPU: bytes in the trainer, not yet normalised."""
    opened = data.open(
        recipes.Data(
            dataset="image_folder", root=str(root / "images"), crop="random_resized", flip=True, workers=1
        )
    )
    opened._finished = lambda images, draws: images  # type: ignore[attr-defined]
    return opened.train_batches(0, batch_size=BATCH, seed=0)


def without_simplejpeg(root: Path) -> Iterator:
    kept, decode.simplejpeg = decode.simplejpeg, None
    try:
        yield from ours("image_folder")(root)
    finally:
        decode.simplejpeg = kept


WAYS: dict[str, Callable[[Path], Iterator]] = {
    "plain loop": from_folder(Plain),
    "torchvision": from_folder(Torchvision),
    "opencv, aliased": from_folder(OpenCV),
    "webdataset": from_webdataset,
    "ours, exact": ours("image_folder", exact=True),
    "ours, Pillow": without_simplejpeg,
    "ours": ours("image_folder"),
    "ours, shards": ours("shards"),
    "ours, bytes": for_a_gpu,
}


def cpu_seconds() -> float:
    """Of this process and of the workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def speed(way: Callable[[Path], Iterator], root: Path) -> float:
    """Images per second of CPU time over one epoch."""
    before, count = cpu_seconds(), 0
    for images, _ in way(root):
        assert images.shape == (BATCH, 3, SIZE, SIZE)
        count += len(images)
    return count / (cpu_seconds() - before)


def measure(n_images: int, rounds: int) -> dict:
    report: dict = {"torch": torch.__version__, "images": n_images, "rounds": rounds, "shapes": {}}
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            # Large ones take their time, and the start of a worker weighs less.
            count = n_images if shape[0] <= 500 else n_images // 4
            n_bytes = make_pictures(root / "images", count, shape)
            shard_writing.write(root / "images", root / "shards", 256_000_000)
            best: dict[str, float] = {}
            missing: dict[str, str] = {}
            for _ in range(rounds):
                for way, batches in WAYS.items():
                    try:
                        best[way] = max(best.get(way, 0), speed(batches, root))
                    except Exception as error:  # not installed, or not made for this torch
                        missing[way] = str(error).splitlines()[0]
        report["shapes"][name] = {"bytes": n_bytes, "images_per_cpu_second": best, "missing": missing}
    return report


def show(report: dict) -> None:
    print(
        f"images per second and core, {report['images']} images, best of {report['rounds']} rounds, ", end=""
    )
    print(f"torch {report['torch']}")
    print(f"{'':>18}" + "".join(f"{name:>16} {'':>6}" for name in report["shapes"]))
    for way in WAYS:
        cells = ""
        for found in report["shapes"].values():
            best = found["images_per_cpu_second"]
            if way in best:
                cells += f"{best[way]:>16.0f} {best[way] / best['plain loop']:>5.2f}x"
            else:
                cells += f"{'-':>16} {'':>6}"
        print(f"{way:>18}{cells}")
    for name, found in report["shapes"].items():
        print(f"{name}: {found['bytes'] / 1000:.0f} kB each")
        for way, reason in found["missing"].items():
            print(f"  {way} is missing: {reason}")


def rss_mbytes(process: int) -> dict[str, float]:
    """Resident memory of a process now and at its highest."""
    status = Path(f"/proc/{process}/status").read_text()
    return {name: int(status.split(f"{name}:")[1].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def memory(n_images: int) -> None:
    """Memory of a worker at ten points of an epoch, folder and shards, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        n_bytes = make_pictures(root / "images", n_images, SHAPES["500 x 375"])
        shard_writing.write(root / "images", root / "shards", 256_000_000)
        print(f"{n_images} JPEGs of {n_bytes / 1000:.0f} kB, one worker, batches of {BATCH}")
        print("MB resident (and highest so far) after each tenth of an epoch", flush=True)
        for dataset in ("image_folder", "shards"):
            subprocess.run([sys.executable, __file__, "--one", dataset, folder], check=True)


def memory_of_one(dataset: str, root: Path) -> None:
    import multiprocessing

    steps, cells = len(list((root / "images" / "train").rglob("*.jpg"))) // BATCH, []
    for step, _ in enumerate(ours(dataset)(root), 1):
        if step % max(1, steps // 10) == 0 and (workers := multiprocessing.active_children()):
            found = rss_mbytes(workers[0].pid or 0)
            cells.append(f"{found['VmRSS']:.0f} ({found['VmHWM']:.0f})")
    print(f"{dataset:>13}: {'  '.join(cells)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--images", type=int, default=1024, help="images of an epoch; a quarter of the large ones"
    )
    parser.add_argument("--rounds", type=int, default=4, help="turns of each way")
    parser.add_argument(
        "--memory", type=int, metavar="N", help="measure the memory of a worker over N images"
    )
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="make the pictures and stop")
    parser.add_argument("--one", nargs=2, metavar=("DATASET", "DIR"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    keep_freed_memory()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.pictures:
        make_pictures(options.pictures, options.images, SHAPES["500 x 375"])
        sys.exit()
    if options.one:
        memory_of_one(options.one[0], Path(options.one[1]))
    elif options.memory:
        memory(options.memory)
    elif options.json:
        print(json.dumps(measure(options.images, options.rounds), indent=2))
    else:
        show(measure(options.images, options.rounds))
