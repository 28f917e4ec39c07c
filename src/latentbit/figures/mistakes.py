"""The confusion matrix and a contact sheet of the images that the network is most wrong about."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import BLUE, GRID, INK, MUTED, VERMILLION, new_figure, styled

NUMBERS_UP_TO = 12
"""Classes up to which the cells have room for a number."""
COLUMNS = 6


@styled
def confusion(analysis: Analysis) -> Figure:
    """Share of each class called what; right answers in blue, wrong ones in vermillion."""
    matrix = np.array(analysis.numbers["mistakes"]["confusion"])
    classes = analysis.numbers["classes"]
    share = matrix / np.maximum(1, matrix.sum(1, keepdims=True))
    right = np.eye(len(matrix), dtype=bool)
    figure = new_figure(4.5)
    axes = figure.add_subplot()
    for mask, colour in ((right, BLUE), (~right, VERMILLION)):
        fade = LinearSegmentedColormap.from_list("fade", [(*_rgb(colour), 0.0), (*_rgb(colour), 1.0)])
        top = 1.0 if mask is right else max(0.1, float(share[~right].max(initial=0)))
        axes.imshow(np.ma.masked_array(share, ~mask), cmap=fade, vmin=0, vmax=top, interpolation="nearest")
    if len(classes) <= NUMBERS_UP_TO:
        for (row, column), n in np.ndenumerate(matrix):
            if n:
                axes.text(
                    column,
                    row,
                    str(n),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if right[row, column] and share[row, column] > 0.5 else INK,
                )
        axes.set_xticks(range(len(classes)), classes, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(classes)), classes)
    axes.set_xticks(np.arange(len(classes) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(classes) + 1) - 0.5, minor=True)
    axes.grid(False)
    if len(classes) <= NUMBERS_UP_TO:
        axes.grid(which="minor", color=GRID, linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.set_xlabel("called")
    axes.set_ylabel("is")
    return figure


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


@styled
def contact_sheet(analysis: Analysis, limit: int = 24) -> Figure:
    """The worst images by falling loss: what each is, and what it was called with what probability."""
    worst = analysis.numbers["mistakes"]["worst"][:limit]
    classes = analysis.numbers["classes"]
    n_rows = -(-len(worst) // COLUMNS)
    figure = new_figure(1.2 * n_rows)
    grid = figure.subplots(n_rows, COLUMNS, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, facts, pixels in zip(grid.flat, worst, analysis.arrays["worst"], strict=False):
        axes.imshow(pixels, interpolation="nearest")
        called = f"→ {str(classes[facts['predicted']])[:10]}, {100 * facts['probability']:.0f} %"
        axes.set_title(str(classes[facts["label"]])[:12], fontsize=8.5, loc="center", pad=2)
        axes.text(
            0.5, -0.05, called, transform=axes.transAxes, ha="center", va="top", fontsize=7.5, color=MUTED
        )
    return figure
