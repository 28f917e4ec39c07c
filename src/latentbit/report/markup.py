"""Pieces of HTML: numbers that remember where they come from, sortable tables, figures with alt texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import svg


@dataclass(frozen=True)
class Cell:
    """One cell of a table; with a `value` it sorts as a number."""

    html: str
    value: float | None = None
    key: str = ""
    """run/path/in/the/json of the value."""


@dataclass(frozen=True)
class Section:
    """One part of the page; `anchor` is its address."""

    anchor: str
    title: str
    html: str


def look_up(numbers: Any, path: str) -> Any:
    """The value at a/b/c, list places counted from 0; None where there is nothing."""
    for step in path.split("/"):
        if isinstance(numbers, list) and int(step) < len(numbers):
            numbers = numbers[int(step)]
        elif isinstance(numbers, dict) and step in numbers:
            numbers = numbers[step]
        else:
            return None
    return numbers


def number(analysis: Analysis, path: str, form: str = "{:.2f}", factor: float = 1, unit: str = "") -> Cell:
    """The number at `path` of an analysis, shown as `form` says after multiplying; a dash where there is none."""
    value = look_up(analysis.numbers, path)
    if value is None:
        return Cell("&ndash;")
    return Cell(form.format(factor * value) + unit, float(value), f"{analysis.name}/{path}")


def percent(analysis: Analysis, path: str) -> Cell:
    """A share, as per cent."""
    return number(analysis, path, "{:.2f}", 100)


def text(words: object) -> Cell:
    """Plain words, escaped."""
    return Cell(escape(str(words)))


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str,
    foot: Sequence[Cell] | None = None,
) -> str:
    """A table that sorts by a click on a heading; wider than the screen it scrolls in its own box."""
    left = [i == 0 or all(row[i].value is None for row in rows) for i in range(len(headings))]
    head = "".join(
        f'<th scope="col"{_class(left[i])}><button type="button">{escape(name)}</button></th>'
        for i, name in enumerate(headings)
    )
    body = "\n".join(_row(row, left) for row in rows)
    last = f"<tfoot>{_row(foot, left)}</tfoot>" if foot else ""
    label = escape(caption, quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="sortable">'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>{last}</table></div>"
    )


def _class(left: bool) -> str:
    return ' class="text"' if left else ""


def _row(cells: Sequence[Cell], left: Sequence[bool]) -> str:
    found = []
    for cell, is_left in zip(cells, left, strict=True):
        value = f' data-value="{cell.value!r}"' if cell.value is not None else ""
        key = f' data-key="{escape(cell.key, quote=True)}"' if cell.key else ""
        found.append(f"<td{_class(is_left)}{value}{key}>{cell.html}</td>")
    return f"<tr>{''.join(found)}</tr>"


class Figures:
    """Turns figures into HTML and gives each ids of its own."""

    def __init__(self) -> None:
        self.n = 0

    def html(self, figure: Figure, alt: str, caption: str) -> str:
        """`alt` says in words what the picture shows; `caption` is HTML."""
        self.n += 1
        drawing = svg(figure, prefix=f"f{self.n}", alt=alt)
        drawing = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", drawing, count=1)  # CSS does
        return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"
