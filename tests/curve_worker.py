"""`latentbit train` that keeps the loss of every step: python curve_worker.py RECIPE OUT [KEY=VALUE]...

Each process writes OUT-curve<rank>.jsonl. CURVE_KILL=rank:step kills that process after that step, at its first start.
"""

import json
import os
import signal
import sys
from pathlib import Path

from latentbit import recipes
from latentbit.training.display import Display
from latentbit.training.train import train

RANK = int(os.environ.get("RANK", "0"))


class Curve(Display):
    def __init__(self, path: Path) -> None:
        super().__init__(quiet=RANK > 0)
        self.path = path
        victim, _, step = os.environ.get("CURVE_KILL", "-1:0").partition(":")
        first_start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        self.dies_at = int(step) if first_start and int(victim) == RANK else -1

    def step(self, epoch: int, step: int, lr: float, speed: float, losses: dict[str, float]) -> None:
        number = epoch * self.steps_per_epoch + step
        with self.path.open("a") as file:
            file.write(json.dumps([number, losses["loss"]]) + "\n")
        if number == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


def gloo_threads() -> list[str]:
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return [name for name in names if "gloo" in name]


if __name__ == "__main__":
    name, out, *overrides = sys.argv[1:]
    train(recipes.load(name, overrides), out=Path(out), display=Curve(Path(f"{out}-curve{RANK}.jsonl")))
    if left := gloo_threads():
        sys.exit(
            f"{left} outlived the training: one that drops a tensor while Python exits aborts the process"
        )
