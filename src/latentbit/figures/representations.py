"""t-SNE of penultimate features, a colour per class and the class's name in its middle (paper, Fig. 4)."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import GRID, INK, PAPER, label, new_figure, styled

CLASS_COLOURS = (
    "#0b78b8",
    "#d55e00",
    "#009e73",
    "#c46fa0",
    "#b8860b",
    "#44aad5",
    "#7a4fb5",
    "#8a8f98",
    "#c23b4e",
    "#6f8f2f",
)
NAMED_UP_TO = 20
"""Classes up to which names fit on the map."""


def class_colours(n: int) -> list[object]:
    """Distinct colours for ten classes; beyond, hues around the wheel."""
    if n <= len(CLASS_COLOURS):
        return list(CLASS_COLOURS[:n])
    return [matplotlib.colormaps["hsv"](i / n) for i in range(n)]


@styled
def tsne_map(analysis: Analysis, view: str) -> Figure:
    """The map of one view. Points become an image inside the SVG: thousands of elements would be slow."""
    figure = new_figure(4.2, 4.2)
    axes = figure.add_subplot()
    points, labels = analysis.arrays[f"tsne_{view}"], analysis.arrays["labels"]
    classes = analysis.numbers["classes"]
    colours = class_colours(len(classes))
    size = 26 if len(points) < 600 else 12 if len(points) < 3000 else 5
    axes.scatter(
        points[:, 0],
        points[:, 1],
        c=[colours[label] for label in labels],
        s=size,
        alpha=0.75,
        linewidths=0,
        rasterized=True,
    )
    if len(classes) <= NAMED_UP_TO:
        _name_classes(axes, points, labels, classes)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set(visible=True, color=GRID)
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.58 * float((high - low).max())
    x, y = (low + high) / 2
    axes.set_xlim(x - half, x + half)
    axes.set_ylim(y - half, y + half)
    axes.set_aspect("equal")
    return figure


def _name_classes(axes: Axes, points: np.ndarray, labels: np.ndarray, classes: list[str]) -> None:
    for index, name in enumerate(classes):
        mine = points[labels == index]
        if len(mine):
            x, y = np.median(mine, axis=0)
            text = axes.text(
                x, y, label(name, 16), ha="center", va="center", weight="bold", color=INK, fontsize=11.5
            )
            text.set_path_effects([withStroke(linewidth=3, foreground=PAPER)])
