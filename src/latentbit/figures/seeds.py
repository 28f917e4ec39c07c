"""Means over seeds with their 95 % intervals: accuracies, and a metric over epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from latentbit.analyze.over_seeds import Mean
from latentbit.analyze.stored import Analysis
from latentbit.figures.accuracy import SHIFTS
from latentbit.figures.style import (
    INK,
    VIEW_COLOURS,
    VIEW_MARKERS,
    label,
    new_figure,
    run_colour,
    run_dashes,
    styled,
)
from latentbit.views.numbers import NUMBERS


@dataclass(frozen=True)
class Group:
    """Runs of one recipe with other seeds."""

    name: str
    runs: Sequence[Analysis]


@styled
def means(groups: Sequence[Group]) -> Figure:
    """A row per recipe: faint marks are runs, the large mark is their mean, the bar its interval."""
    figure = new_figure(0.9 + 0.8 * len(groups))
    axes = figure.add_subplot()
    for row, group in enumerate(groups):
        axes.axhspan(row - 0.38, row + 0.38, color=INK, alpha=0.045, linewidth=0)
        for shift, number in zip(SHIFTS, NUMBERS, strict=False):
            scores = [run.numbers["accuracy"].get(number.key) for run in group.runs]
            values = [100 * score["accuracy"] for score in scores if score is not None]
            if not values:
                continue
            colour, marker, mean = VIEW_COLOURS[number.key], VIEW_MARKERS[number.key], Mean.of(values)
            series = f"{group.name} {number.name}"
            places = [row + shift] * len(values)
            axes.plot(values, places, marker, color=colour, alpha=0.35, markersize=5, label=f"_{series}")
            axes.errorbar(
                mean.value,
                row + shift,
                xerr=mean.half,
                color=colour,
                marker=marker,
                markersize=8,
                linewidth=1.6,
                capsize=3,
                label=number.name if row == 0 else f"_mean {series}",
            )
    axes.set_yticks(range(len(groups)), [label(group.name) for group in groups], color=INK)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(length=0)
    axes.set_xlabel("test accuracy, %")
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, 0), min(high, 100))  # the interval of two seeds can be wider than all accuracies
    figure.legend(loc="outside upper right", ncols=3, handletextpad=0.2)
    return figure


@styled
def curves(groups: Sequence[Group], metric: str, axis: str) -> Figure:
    """The mean of a share over epochs, in per cent; the band is its interval, where there are several seeds."""
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    for i, group in enumerate(groups):
        by_epoch: dict[int, list[float]] = {}
        for run in group.runs:
            for entry in run.numbers["history"]:
                if metric in entry:
                    by_epoch.setdefault(entry["epoch"], []).append(100 * entry[metric])
        whole = {epoch: Mean.of(found) for epoch, found in by_epoch.items() if len(found) == len(group.runs)}
        if not whole:
            continue
        epochs, found = list(whole), list(whole.values())
        middle = [one.value for one in found]
        half = [one.half or 0.0 for one in found]
        colour, name = run_colour(i), label(f"{group.name} ({len(group.runs)})")
        axes.plot(epochs, middle, color=colour, linestyle=run_dashes(i), label=name)
        low, high = ([m + sign * h for m, h in zip(middle, half, strict=True)] for sign in (-1, 1))
        axes.fill_between(
            epochs, low, high, color=colour, alpha=0.18, linewidth=0, label=f"_band {group.name}"
        )
    axes.set_ylabel(axis)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, 0), min(top, 100))
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(length=0)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper left", ncols=2)
    return figure
