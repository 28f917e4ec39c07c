"""Accuracies of B, W and W-dagger with their 95 % intervals, one row per run (paper, Tables 1 and 3)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import INK, VIEW_COLOURS, VIEW_MARKERS, label, new_figure, styled
from latentbit.views.numbers import BY_KEY

SHIFTS = (-0.2, 0.0, 0.2)
"""Of the views within a row, so that equal accuracies do not cover each other."""


@styled
def accuracies(analyses: Sequence[Analysis]) -> Figure:
    """A dot per view; the bar is the interval."""
    figure = new_figure(0.9 + 0.72 * len(analyses))
    axes = figure.add_subplot()
    drawn = set()
    for row, analysis in enumerate(analyses):
        found = analysis.numbers["accuracy"]
        axes.axhspan(row - 0.38, row + 0.38, color=INK, alpha=0.045, linewidth=0)
        for shift, (key, score) in zip(SHIFTS, found.items(), strict=False):
            value = 100 * score["accuracy"]
            low, high = (100 * bound for bound in score["interval"])
            axes.errorbar(
                value,
                row + shift,
                xerr=[[value - low], [high - value]],
                color=VIEW_COLOURS[key],
                marker=VIEW_MARKERS[key],
                markersize=8,
                linewidth=1.6,
                capsize=3,
                label=None if key in drawn else BY_KEY[key].name,
            )
            drawn.add(key)
    axes.set_yticks(range(len(analyses)), [label(analysis.name) for analysis in analyses], color=INK)
    axes.set_ylim(len(analyses) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(length=0)
    axes.set_xlabel("test accuracy, %")
    figure.legend(loc="outside upper right", ncols=3, handletextpad=0.2)
    return figure
