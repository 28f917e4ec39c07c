"""Feature reconstruction error layer by layer, runs side by side (paper, Table 2)."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import label, new_figure, run_colour, run_dashes, run_marker, styled

LOG_FROM = 20
"""Ratio of the largest to the smallest error from which a linear axis would hide the small ones."""


@styled
def errors(analyses: Sequence[Analysis], which: Literal["layers", "unexplained"] = "layers") -> Figure:
    """R_l over the binary layers in order of execution, or the share that no factor explains."""
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    lowest, highest = 1.0, 0.0
    for i, analysis in enumerate(analyses):
        if "reconstruction" not in analysis.numbers:
            continue
        values = list(analysis.numbers["reconstruction"][which].values())
        lowest, highest = min(lowest, *values), max(highest, *values)
        axes.plot(
            range(1, len(values) + 1),
            values,
            color=run_colour(i),
            linestyle=run_dashes(i),
            marker=run_marker(i),
            markersize=5,
            label=label(analysis.name),
        )
    if highest > LOG_FROM * lowest > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("binary layer, from input to output")
    axes.set_ylabel("reconstruction error" if which == "layers" else "share unexplained")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(length=0, which="both")
    if len(analyses) > 1:
        figure.legend(loc="outside upper left", ncols=2)
    return figure
