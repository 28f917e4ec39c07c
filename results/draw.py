"""Draws the accuracies over seeds, and prints the tables of the READMEs here, from the metrics in the folders.

python results/draw.py
"""

import json
import statistics
from pathlib import Path

from latentbit.comparison import standings
from latentbit.comparison.compare import Row
from latentbit.comparison.differences import paired

HERE = Path(__file__).parent
SCREENING = {
    "latent_forms/block_both": "15 epochs",
    "latent_forms/joint_mu.1_k.3": "15 epochs+latent",
    "latent_forms/smooth.1": "15 epochs, label smoothing",
    "latent_forms/lr1e-2": "15 epochs, lr 1e-2",
    "latent_forms/block_after": "15 epochs, norm after",
    "latent_forms/block_both_30": "30 epochs",
    "latent_forms/joint_30": "30 epochs+latent",
}
"""Folders with more than one seed and their names in a figure, the one that others are compared with first."""
ALSO = (
    ("latent_forms/block_both_30", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/smooth.1", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/lr1e-2", "latent_forms/joint_mu.1_k.3"),
    ("latent_forms/lr1e-2", "latent_forms/smooth.1"),
)
"""Differences that the texts state beside those of a figure."""


def last(folder: str) -> list[dict[str, float]]:
    """The last line of metrics of each seed."""
    files = sorted((HERE / folder).glob("seed*/metrics.jsonl"))
    return [json.loads(file.read_text(encoding="utf-8").splitlines()[-1]) for file in files]


def row(folder: str, name: str) -> Row:
    ends = last(folder)
    binary, latent = (tuple(end[f"accuracy_{view}"] for end in ends) for view in ("b", "w_dagger"))
    return Row(name, binary, latent, epochs=int(ends[0]["epoch"]))


def draw(names: dict[str, str], path: Path, title: str) -> dict[str, Row]:
    """The figure of these folders; prints what it shows."""
    rows = {folder: row(folder, name) for folder, name in names.items()}
    shown = list(rows.values())
    standings.plot(shown, path, title)
    print(title)
    for folder, one in rows.items():
        seeds = " ".join(f"{100 * value:.2f}" for value in one.binary)
        print(f"{folder:36} B {seeds}  mean {100 * statistics.fmean(one.binary):.2f}")
        other = standings.opponent(one, shown)
        if one is not other:
            print(f"{'':36} less that of {other.contender}: {standings.difference(one, shown)}")
    return rows


screened = draw(SCREENING, HERE / "latent_forms" / "accuracy.png", "CIFAR-10 at 16 pixels")
for ours, theirs in ALSO:
    print(f"{ours} less {theirs}: {paired(screened[ours].binary, screened[theirs].binary)}")
print()
for folder in sorted((HERE / "latent_forms").iterdir()):
    if folder.is_dir():
        (end, *_) = last(f"latent_forms/{folder.name}")
        views = [
            f"accuracy_{view}" for view in ("b", "w", "w_dagger") if f"accuracy_{view}" in end
        ]  # fp32: no W
        print(
            f"{folder.name:24} seed 0, B / W / W†: " + " / ".join(f"{100 * end[view]:.2f}" for view in views)
        )
