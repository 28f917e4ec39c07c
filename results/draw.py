"""Draws the accuracies over seeds, and prints the tables of the READMEs here, from the metrics in the folders.

python results/draw.py
"""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from latentbit.comparison import standings
from latentbit.comparison.compare import Row
from latentbit.comparison.differences import LATENT, paired
from latentbit.figures.style import MUTED, new_figure, png, run_colour, run_dashes, styled

HERE = Path(__file__).parent
AFTER_15_EPOCHS = {
    "latent_forms/block_both": "plain",
    "latent_forms/joint_mu.1_k.3": "plain+latent",
    "latent_forms/smooth.1": "label smoothing",
    "latent_forms/lr1e-2": "lr 1e-2",
    "tables_16px/label_aware": "printed loss+latent",
    "latent_forms/block_after": "norm after",
}
"""Folders with more than one seed and their names in a figure, the one that others are compared with first."""
AFTER_30_EPOCHS = {
    "latent_forms/block_both_30": "plain",
    "latent_forms/joint_30": "plain+latent",
    "latent_forms/joint_average.99_30": "averaged W+latent",
    "latent_forms/smooth_30": "label smoothing",
    "latent_forms/flip_30": "mirrored images",
}
METHODS = "methods_16px"
FULL_SIZE = {
    "cifar10_32px/plain_30": "plain",
    "cifar10_32px/joint_30": "plain+latent",
    "cifar10_32px/printed_30": "printed loss+latent",
}
CURVES = {
    "cifar10_32px/plain_30": "30 epochs, 3 seeds",
    "cifar10_32px/plain_120": "120 epochs, mirrored images",
    "cifar10_32px/joint_120": "the same, joint training",
}
PAPER = {"paper, no latent loss": 82.37, "paper, with its loss": 85.10}
"""B after 300 epochs, in %."""
ALSO = (
    ("latent_forms/block_both_30", "latent_forms/block_both"),
    ("latent_forms/block_both_30", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/smooth.1", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/lr1e-2", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/lr1e-2", "latent_forms/smooth.1"),
)
"""Differences that the texts state beside those of the figures."""


def last(folder: str) -> list[dict[str, float]]:
    """The last line of metrics of seeds 0, 1, 2, ...: differences are paired by their places."""
    files = sorted((HERE / folder).glob("seed*/metrics.jsonl"))
    seeds = [file.parent.name for file in files]
    if seeds != [f"seed{i}" for i in range(len(seeds))]:
        raise SystemExit(
            f"{HERE / folder} has {', '.join(seeds)}: a seed is missing, and pairs would be wrong"
        )
    return [json.loads(file.read_text(encoding="utf-8").splitlines()[-1]) for file in files]


def row(folder: str, name: str) -> Row:
    ends = last(folder)
    binary, latent = (tuple(end[f"accuracy_{view}"] for end in ends) for view in ("b", "w_dagger"))
    return Row(name, binary, latent, epochs=int(ends[0]["epoch"]))


def each_seed(values: Sequence[float]) -> str:
    """Mean and standard deviation, and what they are of."""
    return f"{standings.percent(values)} ({', '.join(f'{100 * value:.2f}' for value in values)})"


def print_methods(taught: Sequence[str]) -> None:
    """The table of the methods, and what joint training adds to those that it was tried with."""
    print(
        "| method | B | W† | B with joint training | W† with it | difference in B |\n|---|---|---|---|---|---|"
    )
    pairs = []
    for folder in sorted((HERE / METHODS).iterdir()):
        name = folder.name
        if not folder.is_dir() or name.startswith("fit_") or name.endswith(LATENT):
            continue
        alone = row(f"{METHODS}/{name}", name)
        cells = [each_seed(alone.binary), standings.percent(alone.latent), "-", "-", "-"]
        if name in taught:
            joint = row(f"{METHODS}/{name}{LATENT}", name)
            pairs.append((joint.binary, alone.binary))
            cells[2:] = [
                each_seed(joint.binary),
                standings.percent(joint.latent),
                str(paired(joint.binary, alone.binary)),
            ]
        print(f"| `{name}` | " + " | ".join(cells) + " |")
    over_methods = paired(*([statistics.fmean(seeds) for seeds in side] for side in zip(*pairs, strict=True)))
    over_seeds = paired(
        *([statistics.fmean(each) for each in zip(*side, strict=True)] for side in zip(*pairs, strict=True))
    )
    print(f"joint training less none, over {len(pairs)} methods: {over_methods}")
    print(f"the same over seeds, each averaged over these methods: {over_seeds}")


def draw(names: dict[str, str], path: Path, title: str) -> None:
    """The figure of these folders; prints what it shows."""
    rows = [row(folder, name) for folder, name in names.items()]
    standings.plot(rows, path, title)
    print(title)
    for folder, one in zip(names, rows, strict=True):
        seeds = " ".join(f"{100 * value:.2f}" for value in one.binary)
        found = standings.difference(one, rows)
        less = f"  less that of {standings.opponent(one, rows).contender}: {found}" if found else ""
        print(f"{folder:36} B {seeds}  mean {100 * statistics.fmean(one.binary):.2f}{less}")


@styled
def curves(title: str) -> Figure:
    """B of the runs of CURVES over the epochs, beside what the paper has in the end."""
    figure = new_figure(3.4, width=7)
    axes = figure.add_subplot()
    for i, (folder, name) in enumerate(CURVES.items()):
        for n, file in enumerate(sorted((HERE / folder).glob("seed*/metrics.jsonl"))):
            lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            points = [(line["epoch"], 100 * line["accuracy_b"]) for line in lines if "accuracy_b" in line]
            axes.plot(*zip(*points, strict=True), color=run_colour(i), label="" if n else name)
    for y, (name, value) in enumerate(PAPER.items()):
        axes.axhline(
            value, color=MUTED, linestyle=run_dashes(1 + y), linewidth=1.2, label=f"{name}: {value:.2f} %"
        )
    axes.set(title=title, xlabel="epoch", ylabel="B on the test images, %", ylim=(60, 87))
    axes.legend(loc="lower right")
    return figure


def hours(folder: Path) -> float:
    """Of training, by the clock, in all runs below a folder."""
    lines = [
        line
        for file in folder.rglob("metrics.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return sum(json.loads(line).get("seconds", 0.0) for line in lines) / 3600


draw(AFTER_15_EPOCHS, HERE / "latent_forms" / "after_15_epochs.png", "CIFAR-10 at 16 pixels, 15 epochs")
draw(AFTER_30_EPOCHS, HERE / "latent_forms" / "after_30_epochs.png", "CIFAR-10 at 16 pixels, 30 epochs")
(HERE / "cifar10_32px" / "curves.png").write_bytes(png(curves("CIFAR-10, compact ResNet-18")))
draw(FULL_SIZE, HERE / "cifar10_32px" / "after_30_epochs.png", "CIFAR-10, compact ResNet-18, 30 epochs")
for ours, theirs in ALSO:
    print(f"{ours} less {theirs}: {paired(row(ours, ours).binary, row(theirs, theirs).binary)}")
methods = sorted(
    (folder.name.removesuffix(LATENT) for folder in (HERE / METHODS).glob(f"*{LATENT}")),
    key=lambda name: (name != "sign", name),  # the paper's base is what the others are compared with
)
both = [name + ending for name in methods for ending in ("", LATENT)]
draw(
    {f"{METHODS}/{name}": name for name in both},
    HERE / METHODS / "latent.png",
    "CIFAR-10 at 16 pixels, 10 epochs",
)
print_methods(methods)
print()
for folder in sorted([*(HERE / "latent_forms").iterdir(), *(HERE / METHODS).iterdir()]):
    if folder.is_dir():
        (end, *_) = last(f"{folder.parent.name}/{folder.name}")
        views = [
            f"accuracy_{view}" for view in ("b", "w", "w_dagger") if f"accuracy_{view}" in end
        ]  # fp32: no W
        print(
            f"{folder.parent.name}/{folder.name:24} seed 0, B / W / W†: "
            + " / ".join(f"{100 * end[view]:.2f}" for view in views)
        )
print()
spent = {folder.name: hours(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir()}
for name, time in spent.items():
    if time:
        print(f"{name:44} {time:5.1f} hours of training")
print(f"{'in all':44} {sum(spent.values()):5.1f}")
