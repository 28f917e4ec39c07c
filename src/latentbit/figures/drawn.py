"""The numbers that a figure shows, read from the figure itself: what is drawn is what is written."""

import csv
import io
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

LARGEST_IMAGE = 4096
"""Values of a matrix up to which it is numbers; a larger one is a picture, which shows all it has."""


def as_csv(figure: Figure) -> str:
    """Lines, points, bands and small matrices: panel, series, x, y. Empty if the figure has none of them."""
    rows = [
        (panel, series, f"{x:.8g}", f"{y:.8g}")
        for panel, axes in enumerate(figure.axes, 1)
        for series, x, y in _points(axes)
    ]
    if not rows:
        return ""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("panel", "series", "x", "y"))
    writer.writerows(rows)
    return file.getvalue()


def _points(axes: Axes) -> Iterator[tuple[str, float, float]]:
    marked = {id(bars.lines[0]): bars for bars in axes.containers if isinstance(bars, ErrorbarContainer)}
    for line in axes.lines:
        series = _name(marked.get(id(line), line).get_label(), "line")
        for x, y in zip(np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()), strict=True):
            yield series, float(x), float(y)
    for collection in axes.collections:
        series = _name(collection.get_label(), "points")
        if isinstance(collection, PathCollection):
            for x, y in np.asarray(collection.get_offsets()):
                yield series, float(x), float(y)
        elif isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                for x, y in np.asarray(path.vertices):
                    yield series, float(x), float(y)
    for bars in marked.values():
        for one in bars.lines[2]:
            for segment in one.get_segments():
                for x, y in segment:
                    yield f"{_name(bars.get_label(), 'mark')}, interval", float(x), float(y)
    for image in axes.images:
        values = np.asarray(image.get_array())
        if values.ndim == 2 and values.size <= LARGEST_IMAGE:
            for (row, column), value in np.ndenumerate(values):
                yield f"row {row}, column", float(column), float(value)


def no_formula(words: str) -> str:
    """Words that a spreadsheet would take for a formula begin with an apostrophe."""
    return f"'{words}" if words[:1] in ("=", "+", "-", "@", "\t", "\r") else words


def _name(label: object, otherwise: str) -> str:
    words = str(label).lstrip("_")
    return otherwise if words.startswith("child") or words == "nolegend_" else no_formula(words)
