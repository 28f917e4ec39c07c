"""The top of the page: title, the result in one sentence, tiles with the main numbers."""

import math
from collections.abc import Sequence
from html import escape

from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Cell, number
from latentbit.runs import RunDirectory

Runs = Sequence[Analysis]


def title(runs: Runs) -> str:
    """The run's name, or what is compared."""
    if len(runs) == 1:
        return escape(runs[0].name)
    networks = sorted({f"{run.numbers['network']} on {run.numbers['dataset']}" for run in runs})
    return f"{len(runs)} runs: {escape(', '.join(networks))}"


def summary(runs: Runs) -> str:
    """One sentence: who is best, what W does with and without statistics of its own."""
    best = max(runs, key=lambda run: run.numbers["accuracy"]["B"]["accuracy"])
    scores = best.numbers["accuracy"]
    percent = {key: f"{100 * score['accuracy']:.2f} %" for key, score in scores.items()}
    who = escape(best.name)
    what = f"{escape(best.numbers['network'])} on {escape(best.numbers['dataset'])}"
    if not best.has_latent:
        return f"{who} ({what}, 32-bit weights) reaches <strong>{percent['B']}</strong> on the test set."
    start = f"{what}: the binary network reaches" if len(runs) == 1 else f"Best binary network: {who} with"
    cost = best.numbers["cost"]
    return (
        f"{start} <strong>{percent['B']}</strong>{_rivals(runs, best)}. Its latent weights score "
        f"<strong>{percent['W']}</strong> in the batch statistics of B and <strong>{percent['W_dagger']}</strong> with "
        f"their own. One image costs {cost['total']['bops'] / 1e6:,.1f} million bit operations; the weights take "
        f"{cost['mbit']:.2f} Mbit, {cost['ratio']:.1f} times less than at 32 bit."
    )


def _rivals(runs: Runs, best: Analysis) -> str:
    """Runs that the test set is too small to tell from the best one: 0 is in the interval of the difference."""
    top = best.numbers["accuracy"]["B"]
    near = []
    for run in runs:
        score = run.numbers["accuracy"]["B"]
        margin = math.hypot(top["accuracy"] - top["interval"][0], score["interval"][1] - score["accuracy"])
        if run is not best and top["accuracy"] - score["accuracy"] <= margin:
            near.append(run.name)
    return f", too near {escape(', '.join(near))} for {top['total']:,} test images to tell" if near else ""


def tiles(runs: Runs) -> str:
    """Main numbers of a single run; several are compared in the first section."""
    if len(runs) > 1:
        return ""
    run = runs[0]
    found = [("B", _percent(run, "B"), "binary network" if run.has_latent else "test accuracy, 32 bit")]
    if run.has_latent:
        found += [
            ("W", _percent(run, "W"), "W with the statistics of B"),
            ("W_dagger", _percent(run, "W_dagger"), "W† with its own statistics"),
        ]
    found += [
        ("size", number(run, "cost/mbit", "{:.2f}", unit=" Mbit"), "weights"),
        ("ratio", number(run, "cost/ratio", "{:.1f}", unit="×"), "smaller than at 32 bit"),
    ]
    items = "".join(
        f'<li class="view-{name}"><b data-value="{cell.value!r}" data-key="{escape(cell.key, quote=True)}">'
        f"{cell.html}</b><span>{words}</span></li>"
        for name, cell, words in found
    )
    return f'<ul class="tiles">{items}</ul>'


def key(runs: Runs, directories: Sequence[RunDirectory]) -> str:
    """Where the runs behind the short names lie."""
    if len(runs) == 1:
        return ""
    rows = "".join(
        f"<dt>{escape(run.name)}</dt><dd><code>{escape(str(directory.path))}</code></dd>"
        for run, directory in zip(runs, directories, strict=True)
    )
    return f'<dl class="key">{rows}</dl>'


def _percent(run: Analysis, key: str) -> Cell:
    return number(run, f"accuracy/{key}/accuracy", "{:.2f}", 100, " %")
