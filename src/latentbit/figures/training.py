"""Curves over epochs: accuracies of both views, losses, flip rate."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import (
    MUTED,
    VIEW_COLOURS,
    label,
    new_figure,
    run_colour,
    run_dashes,
    run_marker,
    styled,
)
from latentbit.views.numbers import NUMBERS, B


@styled
def accuracy_curves(analyses: Sequence[Analysis]) -> Figure:
    """One run: its views and the training accuracy. Several: B, a colour and dash pattern per run."""
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    if len(analyses) == 1:
        history = analyses[0].numbers["history"]
        for number in NUMBERS:
            _line(axes, history, number.metric, 100, color=VIEW_COLOURS[number.key], label=number.name)
        _line(axes, history, "train_accuracy", 100, color=MUTED, linestyle=(0, (2, 2)), label="B, training")
        axes.set_ylabel("accuracy, %")
    else:
        _runs(axes, analyses, B.metric, 100)
        axes.set_ylabel(f"test accuracy of {B.name}, %")
    return _finish(figure, axes)


@styled
def curves(analyses: Sequence[Analysis], metric: str, axis: str, percent: bool = False) -> Figure:
    """One metric of every run."""
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    _runs(axes, analyses, metric, 100 if percent else 1)
    axes.set_ylabel(f"{axis}, %" if percent else axis)
    if len(analyses) == 1:
        return _finish(figure, axes, legend=False)
    return _finish(figure, axes)


def _runs(axes: Axes, analyses: Sequence[Analysis], metric: str, factor: float) -> None:
    for i, analysis in enumerate(analyses):
        look = {"color": run_colour(i), "linestyle": run_dashes(i), "marker": run_marker(i)}
        _line(axes, analysis.numbers["history"], metric, factor, label=label(analysis.name), **look)


def _line(axes: Axes, history: list[dict[str, float]], metric: str, factor: float, **look: object) -> None:
    points = [(entry["epoch"], factor * entry[metric]) for entry in history if metric in entry]
    if points:
        x, y = zip(*points, strict=True)
        every = max(1, len(x) // 12)
        axes.plot(x, y, markersize=4, markevery=every, **({"marker": "o"} | look))  # type: ignore[arg-type]


def _finish(figure: Figure, axes: Axes, legend: bool = True) -> Figure:
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(length=0)
    if legend and axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper left", ncols=2)
    return figure
