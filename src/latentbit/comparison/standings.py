"""The rows of a comparison as a table on the terminal, as Markdown and as a figure."""

import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latentbit.atomic import atomic_write
from latentbit.comparison.differences import LATENT, Difference, paired
from latentbit.figures.style import BLUE, INK, VERMILLION, new_figure, png, styled

if TYPE_CHECKING:
    from rich.table import Table

    from latentbit.comparison.compare import Row

HEADINGS = (
    "method",
    "B %",
    "B less that of",
    "W† %",
    "step time",
    "left at inference",
    "packed kB",
    "published %",
    "source",
)


PAIRED = (
    "Differences are in points, paired over seeds, with a 95 % interval (Student's t). "
    "Where it includes 0, no ranking is claimed."
)


def percent(values: Sequence[float]) -> str:
    """Mean, with the standard deviation over seeds where there are several."""
    if not values:
        return "-"
    mean = f"{100 * statistics.fmean(values):.2f}"
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def opponent(row: "Row", rows: Sequence["Row"]) -> "Row":
    """Whom a row is compared with: itself without the latent loss where that is there, else the first row."""
    alone = row.contender.removesuffix(LATENT)
    return next((other for other in rows if other.contender == alone and other is not row), rows[0])


def difference(row: "Row", rows: Sequence["Row"]) -> Difference | None:
    """B of a row less that of its opponent. None for the first row, and where there are fewer than two seeds."""
    other = opponent(row, rows)
    return paired(row.binary, other.binary) if other is not row else None


def cells(row: "Row", rows: Sequence["Row"]) -> tuple[str, ...]:
    """One row as text, in the order of HEADINGS."""
    found = difference(row, rows)
    return (
        row.contender,
        percent(row.binary) if not row.problem else "-",
        f"{opponent(row, rows).contender}: {found}" if found else "-",
        percent(row.latent) if not row.problem else "-",
        f"{row.step_ratio:.2f}x" if not row.problem else "-",
        row.problem or row.inference,
        "-" if row.packed_bytes is None else f"{row.packed_bytes / 1000:.1f}",
        "-" if row.published is None else f"{row.published:g}",
        row.source or "-",
    )


def what_is_shown(rows: Sequence["Row"]) -> str:
    """Of which epoch and images the accuracies are, and what stands behind ±."""
    seeds = max((len(row.binary) for row in rows), default=0)
    several = f"; mean ± standard deviation over {seeds} seeds" if seeds > 1 else "; one seed"
    epochs = {row.epochs for row in rows}
    if len(epochs) == 1:
        last = f"of {epochs.pop()} epochs"
    else:
        last = "epoch (" + ", ".join(f"{row.contender} {row.epochs}" for row in rows) + ")"
    return f"B and W†: accuracy on the test images after the last {last}{several}."


def table(rows: Sequence["Row"], title: str) -> "Table":
    """For the terminal: the numbers. What takes a sentence is in notes()."""
    from rich.table import Table

    narrow = [
        HEADINGS.index(heading)
        for heading in ("method", "B %", "W† %", "step time", "packed kB", "published %")
        if heading != "published %" or any(row.published is not None for row in rows)
    ]
    result = Table(title=title, title_justify="left")
    for i in narrow:
        result.add_column(HEADINGS[i], justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        texts = cells(row, rows)
        result.add_row(*(texts[i] for i in narrow))
    return result


def differences(rows: Sequence["Row"]) -> "Table":
    """For the terminal: B of each row less that of its opponent."""
    from rich.table import Table

    result = Table(title="Differences in B, points", title_justify="left")
    result.add_column("method", no_wrap=True)
    result.add_column("less that of", no_wrap=True)
    result.add_column("mean (95 % interval)", justify="right", no_wrap=True)
    result.add_column("seeds", justify="right")
    for row in rows:
        found, other = difference(row, rows), opponent(row, rows)
        if other is row:
            continue
        seeds = min(len(row.binary), len(other.binary))
        result.add_row(row.contender, other.contender, str(found or "-"), str(seeds))
    return result


def has_differences(rows: Sequence["Row"]) -> bool:
    """Whether there are seeds enough for an interval."""
    return any(difference(row, rows) for row in rows)


def notes(rows: Sequence["Row"]) -> list[str]:
    """A line for each row that says more than numbers."""
    lines = []
    if has_differences(rows):
        lines.append(PAIRED)
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


def markdown(rows: Sequence["Row"], title: str, note: str = "") -> str:
    """For a file that is kept beside the runs."""
    lines = [
        f"# {title}",
        "",
        *([note, ""] if note else []),
        *([PAIRED, ""] if has_differences(rows) else []),
    ]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row, rows)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def plot(rows: Sequence["Row"], path: Path, title: str) -> None:
    """Accuracy of B: a dot per seed, a stroke for their mean, a cross for the published number.

    With several seeds a second panel has the differences to the opponents and their 95 % intervals.
    """
    with atomic_write(path) as file:
        file.write(png(_drawn(rows, title)))


@styled
def _drawn(rows: Sequence["Row"], title: str) -> Figure:
    shown = [row for row in rows if row.binary]
    differences = {y: difference(row, shown) for y, row in enumerate(shown)}
    wide = any(differences.values())
    figure = new_figure(1.0 + 0.26 * len(shown), width=9 if wide else 7)
    if wide:
        axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        others = {opponent(row, shown).contender for row in shown if opponent(row, shown) is not row}
        other = others.pop() if len(others) == 1 else "the method alone,\nor of the first"
        _draw_differences(beside, differences, other)
    else:
        axes = figure.add_subplot()
    for y, row in enumerate(shown):
        colour = VERMILLION if row.contender.endswith(LATENT) else BLUE
        marker = "s" if row.contender.endswith(LATENT) else "o"
        values = [100 * value for value in row.binary]
        axes.plot(values, [y] * len(values), marker, color=colour, markersize=6)
        if len(values) > 1:
            axes.plot(statistics.fmean(values), y, "|", color=colour, markersize=14, markeredgewidth=2)
        if row.published is not None:
            axes.plot(row.published, y, "x", color=INK)
    axes.set_yticks(range(len(shown)), [row.contender for row in shown], color=INK)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(length=0)
    key = ["square: with the latent loss"] if any(row.contender.endswith(LATENT) for row in shown) else []
    key += ["cross: published"] if any(row.published is not None for row in shown) else []
    axes.set_xlabel("accuracy of the binary network, %" + (f"\n({'; '.join(key)})" if key else ""))
    beside = 64 - max(len(row.contender) for row in shown)  # letters: the title begins where the names end
    axes.set_title(textwrap.fill(title, max(beside, 24)), loc="left")
    return figure


def _draw_differences(axes: Axes, differences: dict[int, Difference | None], other: str) -> None:
    axes.axvline(0, color=INK, linewidth=0.8)
    for y, found in differences.items():
        if found is not None:
            colour = VERMILLION if found.shown else INK
            axes.errorbar(
                100 * found.mean,
                y,
                xerr=100 * found.half,
                fmt="o",
                color=colour,
                capsize=3,
                markersize=4,
            )
    axes.tick_params(length=0)
    axes.set_xlabel(f"B less that of {other}, points,\n95 % interval (red: leaves out 0)")
