"""Draws accuracy.png and prints the tables of the README here, from the metrics beside it.

python results/latent_forms/draw.py
"""

import json
import statistics
from pathlib import Path

from latentbit.comparison import standings
from latentbit.comparison.compare import Row
from latentbit.comparison.differences import paired

HERE = Path(__file__).parent
SEVERAL = {
    "block_both": "15 epochs",
    "joint_mu.1_k.3": "15 epochs+latent",
    "smooth.1": "15 epochs, label smoothing",
    "lr1e-2": "15 epochs, lr 1e-2",
    "block_after": "15 epochs, norm after",
    "block_both_30": "30 epochs",
    "joint_30": "30 epochs+latent",
}
"""Folders with more than one seed and their names in the figure, the one that others are compared with first."""


def last(variant: str) -> list[dict[str, float]]:
    """The last line of metrics of each seed."""
    files = sorted((HERE / variant).glob("seed*/metrics.jsonl"))
    return [json.loads(file.read_text(encoding="utf-8").splitlines()[-1]) for file in files]


def row(variant: str) -> Row:
    ends = last(variant)
    binary, latent = (tuple(end[f"accuracy_{view}"] for end in ends) for view in ("b", "w_dagger"))
    nan = float("nan")
    return Row(SEVERAL[variant], binary, latent, nan, nan, "", None, None, "", epochs=int(ends[0]["epoch"]))


rows = {variant: row(variant) for variant in SEVERAL}
shown = list(rows.values())
standings.plot(shown, HERE / "accuracy.png", "CIFAR-10 at 16 pixels")
for variant, one in rows.items():
    seeds = " ".join(f"{100 * value:.2f}" for value in one.binary)
    print(f"{variant:16} B {seeds}  mean {100 * statistics.fmean(one.binary):.2f}")
    if one is not shown[0]:
        other = standings.opponent(one, shown).contender
        print(f"{'':16} less that of {other}: {standings.difference(one, shown)}")
for ours, theirs in (
    ("block_both_30", "joint_mu.1_k.3"),
    ("smooth.1", "joint_mu.1_k.3"),
    ("lr1e-2", "joint_mu.1_k.3"),
    ("lr1e-2", "smooth.1"),
):
    print(f"{ours} less {theirs}: {paired(rows[ours].binary, rows[theirs].binary)}")
print()
for folder in sorted(HERE.iterdir()):
    if folder.is_dir():
        (end, *_) = last(folder.name)
        found = [
            f"accuracy_{view}" for view in ("b", "w", "w_dagger") if f"accuracy_{view}" in end
        ]  # fp32: no W
        print(
            f"{folder.name:24} seed 0, B / W / W†: " + " / ".join(f"{100 * end[name]:.2f}" for name in found)
        )
