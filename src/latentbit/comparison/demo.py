"""The two-minute demonstration: the same small binary network with and without its latent weights at work."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from latentbit import lbit, recipes
from latentbit.export import export
from latentbit.packing.pack_run import pack_run
from latentbit.runs import RUNS, RunDirectory, new_path
from latentbit.score import Score
from latentbit.training.evaluate import Scores
from latentbit.training.train import train
from latentbit.views.numbers import EXPLAINED, NUMBERS

RECIPES = ("digits_resnet18_compact_baseline", "digits_resnet18_compact")


def demo(epochs: int | None = None, runs: Path = RUNS) -> list[RunDirectory]:
    """Train both on the embedded digits and print their accuracies side by side."""
    overrides = [] if epochs is None else [f"epochs={epochs}"]
    finished: list[tuple[RunDirectory, Scores]] = []
    for name in RECIPES:
        run, scores = train(recipes.load(name, overrides), out=new_path(runs, name))
        if scores is None:
            return []  # stopped by a signal, which has printed how to resume
        finished.append((run, scores))
    console = Console()
    console.print(_table(finished))
    console.print(EXPLAINED)
    for run, _ in finished:
        console.print(f"run in {run.path}", highlight=False, soft_wrap=True)
    console.print(f"try it: open {_page(finished[-1][0])} in a browser", highlight=False, soft_wrap=True)
    return [run for run, _ in finished]


def _page(run: RunDirectory) -> Path:
    """The network of a run as a web page to draw digits on."""
    network = pack_run(run.path).network
    lbit.write(network, run.path / "model.lbit")
    export(network, "html", run.path / "net.html")
    return (run.path / "net.html").resolve()


def _table(finished: list[tuple[RunDirectory, Scores]]) -> Table:
    table = Table(title="embedded digits, compact binary ResNet-18, accuracy on 360 test images")
    for heading in ("training", *(number.name for number in NUMBERS), "seconds"):
        table.add_column(heading, justify="left" if heading == "training" else "right")
    for run, scores in finished:
        latent = run.recipe().loss.latent
        strategy = "baseline" if latent == "none" else f"+ latent weights ({latent})"
        seconds = sum(entry["seconds"] for entry in run.metrics())
        columns = (_percent(scores.named().get(number)) for number in NUMBERS)
        table.add_row(strategy, *columns, f"{seconds:.0f}")
    return table


def _percent(score: Score | None) -> str:
    return "-" if score is None else f"{100 * score.accuracy:.1f} %"
