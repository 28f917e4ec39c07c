"""Networks of strangers: binarized, warned about, trained on digits, packed, run. The table of results/strangers.

    python bench/strangers.py                          13 networks, 3 seeds, 8 epochs: about 15 minutes on one core
    python bench/strangers.py --seeds 1 --only DenseNet
    python bench/strangers.py --out results/strangers/strangers.txt

Each network is trained three times from the same weights with the same budget (Adam, one learning rate, batches of
64): as it is; after `binarize_(model)`; after `binarize_(model, activation="prelu")`. Accuracies are of the last epoch,
on the 360 test digits, which choose nothing; of the U-Net they are of pixels, each of which belongs to its digit or to
none. The last network is packed, and what the engine gives for the test digits is compared with PyTorch: the largest
difference of a logit, as a share of the largest logit.
"""

import argparse
import copy
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import latentbit
from latentbit.data import digits
from latentbit.engine import Engine
from latentbit.errors import LatentbitError, LatentbitWarning
from latentbit.lbit import to_bytes
from latentbit.packing.pack_run import compare

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from strangers_networks import NETWORKS, logits  # noqa: E402

BATCH, LEARNING_RATE, INK, NO_DIGIT = 64, 2e-3, 128, 10


def images_and_labels() -> tuple[Tensor, Tensor, Tensor]:
    """Normalised images, the digit of each, and the digit of each pixel."""
    pixels, labels = digits.arrays()
    images = torch.from_numpy((pixels / np.float32(255) - digits.MEAN[0]) / digits.STD[0]).float()
    classes = torch.from_numpy(labels).long()
    maps = torch.where(torch.from_numpy(pixels[:, 0]) >= INK, classes[:, None, None], NO_DIGIT)
    return images, classes, maps


def train(model: nn.Module, images: Tensor, labels: Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    model.train()
    for epoch in range(epochs):
        latentbit.progress(model, epoch / epochs)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for some in order.split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(logits(model(images[some])), labels[some]).backward()
            optimizer.step()
    model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    return float((logits(model(images)).argmax(1) == labels).float().mean())


def packed(model: nn.Module, images: Tensor) -> tuple[str, list[str]]:
    """What the file weighs and how the engine differs, or the error; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            network = latentbit.pack(model, images[:1])
        except LatentbitError as error:
            return f"refused: {error}", []
    said = [str(one.message) for one in caught if issubclass(one.category, LatentbitWarning)]
    with torch.no_grad():
        agreement = compare(logits(model(images)).numpy(), Engine(network)(images.numpy()))
    size = f"{len(to_bytes(network)) / 1000:.1f} kB (FP32 {4 * sum(p.numel() for p in model.parameters()) / 1000:.0f})"
    same = f"same class on {agreement.n_same} of {agreement.n_images}"
    return f"{size}, engine differs by {agreement.largest:.1e}, {same}", said


def row(name: str, seeds: int, epochs: int) -> list[str]:
    """Lines about one network."""
    images, classes, maps = images_and_labels()
    labels = maps if name == "U-Net" else classes
    learn, test = slice(0, digits.N_TRAIN), slice(digits.N_TRAIN, None)
    found: dict[str, list[float]] = {"real": [], "as it is": [], "prelu": []}
    lines: list[str] = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        try:
            fresh = NETWORKS[name]()
        except ImportError as error:
            return [f"{name}", f"    skipped: {error}"]
        for kind in found:
            model = copy.deepcopy(fresh)
            if kind != "real":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    swapped = latentbit.binarize_(model, activation="prelu" if kind == "prelu" else None)
                if seed == 0:
                    lines += said_by_binarize(kind, swapped)
            torch.manual_seed(seed)
            train(model, images[learn], labels[learn], epochs)
            found[kind].append(accuracy(model, images[test], labels[test]))
            if seed == 0 and kind == "prelu":
                result, said = packed(model, images[test])
                lines += [f"    packed     {result}", *(f"    pack warns {line}" for line in said)]
    scores = "   ".join(f"{kind} {spread(values)}" for kind, values in found.items())
    return [f"{name}", f"    accuracy   {scores}", *lines]


def spread(values: list[float]) -> str:
    mean = f"{100 * statistics.mean(values):5.1f}"
    return mean if len(values) == 1 else f"{mean} ({100 * min(values):.1f} to {100 * max(values):.1f})"


def said_by_binarize(kind: str, swapped: latentbit.Swapped) -> list[str]:
    counts = (len(swapped.swapped), len(swapped.kept), len(swapped.replaced))
    what = "{} layers binary, {} real, {} activations replaced".format(*counts)
    blind = [f"{name} ({by})" for name, by in swapped.blocked]
    warned = f"; WARNS of a constant input: {', '.join(blind)}" if blind else ""
    warned += "" if swapped.traced else "; WARNS that the forward cannot be traced"
    return [f"    {kind:10} {what}{warned}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--only", choices=NETWORKS, help="one network")
    parser.add_argument("--out", type=Path, help="write the table there too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.monotonic()
    lines = [
        f"digits, {arguments.epochs} epochs, {arguments.seeds} seed(s), Adam, lr {LEARNING_RATE}, batch {BATCH}, "
        f"method sign; torch {torch.__version__}",
        "accuracy in %, mean over seeds (least to most), of the last epoch",
        'as it is: binarize_(model)    prelu: binarize_(model, activation="prelu")',
    ]
    print("\n".join(lines), flush=True)
    for name in [arguments.only] if arguments.only else NETWORKS:
        new = ["", *row(name, arguments.seeds, arguments.epochs)]
        print("\n".join(new), flush=True)
        lines += new
    print(f"\n{time.monotonic() - begun:.0f} s")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
