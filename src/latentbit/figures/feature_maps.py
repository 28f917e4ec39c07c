"""One layer's maps of one image in the three networks, a row for each (paper, Fig. 3)."""

from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import MUTED, WIDTH, label, new_figure, styled
from latentbit.views.numbers import BY_KEY, NUMBERS, B

COLUMNS = 6


@styled
def rows(analysis: Analysis, columns: int = COLUMNS) -> Figure:
    """The image, and the first channels; dark is -1, bright is +1."""
    maps = {key: analysis.arrays[f"maps_{key}"] for key in BY_KEY}
    columns = min(columns, len(maps[B.key]))
    figure = new_figure(WIDTH / (columns + 1) * 1.36 * 3 / 1.08)
    axes = figure.add_subplot()
    name = analysis.numbers["classes"][analysis.numbers["feature_maps"]["label"]]
    axes.imshow(analysis.arrays["image"], interpolation="nearest", extent=(0, 1, 1, 0))
    axes.text(0, -0.06, label(name, 7), va="bottom", fontsize=11.5, color=MUTED)
    for row, number in enumerate(NUMBERS):
        y = 1.36 * row
        axes.text(1.2, y - 0.06, number.name, va="bottom", fontsize=11.5)
        for channel in range(columns):
            x = 1.2 + 1.08 * channel
            extent = (x, x + 1, y + 1, y)
            axes.imshow(
                maps[number.key][channel],
                cmap="cividis",
                vmin=-1,
                vmax=1,
                interpolation="nearest",
                extent=extent,
            )
    axes.axis("off")
    axes.set_xlim(0, 1.2 + 1.08 * columns)
    axes.set_ylim(1.36 * 2 + 1.02, -0.3)
    return figure
