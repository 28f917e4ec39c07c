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
SEVERAL = ("block_both", "block_after", "joint_mu.1_k.3", "block_both_30")
"""With more than one seed, the one that others are compared with first."""


def last(variant: str) -> list[dict[str, float]]:
    """The last line of metrics of each seed."""
    files = sorted((HERE / variant).glob("seed*/metrics.jsonl"))
    return [json.loads(file.read_text(encoding="utf-8").splitlines()[-1]) for file in files]


def row(variant: str) -> Row:
    ends = last(variant)
    binary, latent = (tuple(end[f"accuracy_{view}"] for end in ends) for view in ("b", "w_dagger"))
    nan = float("nan")
    return Row(variant, binary, latent, nan, nan, "", None, None, "", epochs=int(ends[0]["epoch"]))


rows = [row(variant) for variant in SEVERAL]
standings.plot(rows, HERE / "accuracy.png", "CIFAR-10 at 16 pixels")
for one in rows:
    difference = paired(one.binary, rows[0].binary) if one is not rows[0] else ""
    seeds = " ".join(f"{100 * value:.2f}" for value in one.binary)
    print(f"{one.contender:18} {one.epochs} epochs  B {seeds}  mean {100 * statistics.fmean(one.binary):.2f}")
    print(f"{'':18} less the first's {difference}  W† {100 * statistics.fmean(one.latent):.2f}")
print("block_both_30 less joint_mu.1_k.3:", paired(rows[3].binary, rows[2].binary))
print()
for folder in sorted(HERE.iterdir()):
    if folder.is_dir():
        (end, *_) = last(folder.name)
        numbers = " / ".join(f"{100 * end[f'accuracy_{view}']:.2f}" for view in ("b", "w", "w_dagger"))
        print(f"{folder.name:24} seed 0, B / W / W†: {numbers}")
