"""The top of the page: title, the result in one sentence, tiles with the main numbers."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Cell, number, render
from latentbit.runs import RunDirectory
from latentbit.views.numbers import BY_KEY, B

Runs = Sequence[Analysis]


def title(runs: Runs) -> str:
    """The run's name, or what is compared."""
    if len(runs) == 1:
        return runs[0].name
    networks = sorted({f"{run.numbers['network']} on {run.numbers['dataset']}" for run in runs})
    return f"{len(runs)} runs: {', '.join(networks)}"


def opening(runs: Runs, directories: Sequence[RunDirectory]) -> Markup:
    """Who is best and what its W does, in one sentence; tiles for a single run, paths for several."""
    best = max(runs, key=lambda run: run.numbers["accuracy"][B.key]["accuracy"])
    scores, cost = best.numbers["accuracy"], best.numbers["cost"]
    return render(
        "opening.html",
        runs=runs,
        best=best,
        epoch=best.numbers.get("epoch_in_words", ""),  # analyses of 0.1.0 do not say
        what=f"{best.numbers['network']} on {best.numbers['dataset']}",
        percent={key: f"{100 * score['accuracy']:.2f} %" for key, score in scores.items()},
        rivals=_rivals(runs, best),
        n_images=f"{scores[B.key]['total']:,}",
        bops=f"{cost['total']['bops'] / 1e6:,.1f}",
        mbit=f"{cost['mbit']:.2f}",
        ratio=f"{cost['ratio']:.1f}",
        tiles=_tiles(runs[0]) if len(runs) == 1 else [],
        places=list(zip(runs, directories, strict=True)),
    )


def _rivals(runs: Runs, best: Analysis) -> list[str]:
    """Runs that the test set is too small to tell from the best one: 0 is in the interval of the difference."""
    top = best.numbers["accuracy"][B.key]
    near = []
    for run in runs:
        score = run.numbers["accuracy"][B.key]
        margin = math.hypot(top["accuracy"] - top["interval"][0], score["interval"][1] - score["accuracy"])
        if run is not best and top["accuracy"] - score["accuracy"] <= margin:
            near.append(run.name)
    return near


def _tiles(run: Analysis) -> list[dict[str, object]]:
    """The accuracies that the run has, and its size."""
    shown = [
        (key, number(run, f"accuracy/{key}/accuracy", "{:.2f}", 100, " %"), _words(run, key))
        for key in run.numbers["accuracy"]
    ]
    size: list[tuple[str, Cell, str]] = [
        ("size", number(run, "cost/mbit", "{:.2f}", unit=" Mbit"), "weights"),
        ("ratio", number(run, "cost/ratio", "{:.1f}", unit="×"), "smaller than in FP32"),
    ]
    return [{"name": name, "cell": cell, "words": words} for name, cell, words in [*shown, *size]]


def _words(run: Analysis, key: str) -> str:
    if not run.has_latent:
        return "test accuracy, real network"
    return f"{BY_KEY[key].name}: {BY_KEY[key].short}"
