"""The rows of a comparison as a table on the terminal, as Markdown and as a figure."""

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from latentbit.atomic import atomic_write
from latentbit.figures.style import BLUE, INK, VERMILLION, new_figure, png, styled

if TYPE_CHECKING:
    from rich.table import Table

    from latentbit.comparison.compare import Row

HEADINGS = ("method", "B %", "W† %", "step time", "left at inference", "packed kB", "published %", "source")


def percent(values: Sequence[float]) -> str:
    """Mean, with the standard deviation over seeds where there are several."""
    if not values:
        return "-"
    mean = f"{100 * statistics.fmean(values):.2f}"
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def cells(row: "Row") -> tuple[str, ...]:
    """One row as text, in the order of HEADINGS."""
    return (
        row.contender,
        percent(row.binary) if not row.problem else "-",
        percent(row.latent) if not row.problem else "-",
        f"{row.step_ratio:.2f}x" if not row.problem else "-",
        row.problem or row.inference,
        "-" if row.packed_bytes is None else f"{row.packed_bytes / 1000:.1f}",
        "-" if row.published is None else f"{row.published:g}",
        row.source or "-",
    )


def table(rows: Iterable["Row"], title: str) -> "Table":
    """For the terminal: the numbers. What takes a sentence is in notes()."""
    from rich.table import Table

    narrow = [
        HEADINGS.index(heading)
        for heading in ("method", "B %", "W† %", "step time", "packed kB", "published %")
    ]
    result = Table(title=title, title_justify="left")
    for i in narrow:
        result.add_column(HEADINGS[i], justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        texts = cells(row)
        result.add_row(*(texts[i] for i in narrow))
    return result


def notes(rows: Iterable["Row"]) -> list[str]:
    """A line for each row that says more than numbers."""
    lines = []
    for row in rows:
        if row.problem:
            lines.append(f"{row.contender}: {row.problem}")
        elif row.inference != "nothing":
            lines.append(
                f"{row.contender}: inference keeps {row.inference}".replace("inference keeps not", "not")
            )
        if row.source:
            lines.append(f"{row.contender}: published {row.published:g}, {row.source}")
    return lines


def markdown(rows: Iterable["Row"], title: str, note: str = "") -> str:
    """For a file that is kept beside the runs."""
    lines = [f"# {title}", "", *([note, ""] if note else [])]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def plot(rows: Sequence["Row"], path: Path, title: str) -> None:
    """Accuracy of B: a dot per seed, a stroke for their mean, a cross for the published number."""
    with atomic_write(path) as file:
        file.write(png(_drawn(rows, title)))


@styled
def _drawn(rows: Sequence["Row"], title: str) -> Figure:
    shown = [row for row in rows if row.binary]
    figure = new_figure(1.0 + 0.26 * len(shown), width=7)
    axes = figure.add_subplot()
    for y, row in enumerate(shown):
        colour = VERMILLION if row.contender.endswith("+latent") else BLUE
        marker = "s" if row.contender.endswith("+latent") else "o"
        values = [100 * value for value in row.binary]
        axes.plot(values, [y] * len(values), marker, color=colour, markersize=6)
        if len(values) > 1:
            axes.plot(statistics.fmean(values), y, "|", color=colour, markersize=14, markeredgewidth=2)
        if row.published is not None:
            axes.plot(row.published, y, "x", color=INK)
    axes.set_yticks(range(len(shown)), [row.contender for row in shown], color=INK)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.set_xlabel("accuracy of the binary network, % (square: with the latent loss; cross: published)")
    axes.set_title(textwrap.fill(title, 64), loc="left")
    return figure
