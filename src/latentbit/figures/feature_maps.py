"""One layer's maps of one image in the three networks, a row for each (paper, Fig. 3)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import GRID, MUTED, WIDTH, new_figure, styled

ROWS = {
    "B": "B with its own statistics: sign",
    "W": "W with the stale statistics of B: sign",
    "W_dagger": "W† with renewed statistics: hard tanh",
}
COLUMNS = 6


@styled
def rows(analysis: Analysis, columns: int = COLUMNS) -> Figure:
    """The image, and the first channels; dark is -1, bright is +1."""
    maps = {key: analysis.arrays[f"maps_{key}"] for key in ROWS}
    columns = min(columns, len(maps["B"]))
    side = WIDTH / (columns + 1.2)
    figure = new_figure(3 * (side + 0.24))
    grid = figure.add_gridspec(3, columns + 1, width_ratios=[1.15, *[1.0] * columns])
    picture = figure.add_subplot(grid[0, 0])
    picture.imshow(analysis.arrays["image"], interpolation="nearest")
    _bare(picture)
    label = analysis.numbers["classes"][analysis.numbers["feature_maps"]["label"]]
    picture.set_title(str(label)[:12], fontsize=9, color=MUTED, pad=3)
    for row, (key, name) in enumerate(ROWS.items()):
        for channel in range(columns):
            axes = figure.add_subplot(grid[row, 1 + channel])
            axes.imshow(maps[key][channel], cmap="cividis", vmin=-1, vmax=1, interpolation="nearest")
            _bare(axes)
            if channel == 0:
                words = axes.text(0, 1.06, name, transform=axes.transAxes, va="bottom", fontsize=9)
                words.set_in_layout(False)  # it may reach over the maps beside
    return figure


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=GRID)
