"""The confusion matrix and a contact sheet of the images that the network is most wrong about."""

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import BLUE, GRID, INK, MUTED, VERMILLION, WIDTH, label, new_figure, styled

NUMBERS_UP_TO = 12
"""Classes up to which the cells have room for a number."""
COLUMNS = 4


@styled
def confusion(analysis: Analysis) -> Figure:
    """Share of each class called what; right answers in blue, wrong ones in vermillion."""
    matrix = np.array(analysis.numbers["mistakes"]["confusion"])
    classes = [label(name, 16) for name in analysis.numbers["classes"]]
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
                    fontsize=11.5,
                    color="white" if right[row, column] and share[row, column] > 0.5 else INK,
                )
        short = all(len(name) <= 2 for name in classes)
        slanted: dict[str, Any] = {} if short else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(classes)), classes, **slanted)
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
    step = 1.66  # a picture is 1 x 1, the rest is for words
    figure = new_figure(WIDTH / COLUMNS / 1.1 * step * n_rows)
    axes = figure.add_subplot()
    for i, (facts, pixels) in enumerate(zip(worst, analysis.arrays["worst"], strict=False)):
        x, y = 1.1 * (i % COLUMNS), step * (i // COLUMNS)
        axes.imshow(pixels, interpolation="nearest", extent=(x, x + 1, y + 1, y))
        called = f"→ {label(classes[facts['predicted']], 11)}\n{100 * facts['probability']:.0f} %"
        look: dict[str, Any] = {"ha": "center", "clip_on": False}
        axes.text(x + 0.5, y - 0.04, label(classes[facts["label"]], 12), va="bottom", fontsize=11.5, **look)
        axes.text(x + 0.5, y + 1.04, called, va="top", fontsize=11.5, color=MUTED, **look)
    axes.axis("off")
    axes.set_xlim(0, 1.1 * COLUMNS - 0.1)
    axes.set_ylim(step * n_rows - 0.2, -0.26)
    return figure
