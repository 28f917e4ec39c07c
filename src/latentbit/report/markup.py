"""What templates are given: numbers that remember where they come from, tables, drawings with alt texts.

The templates beside this file hold all markup. They escape every value, so that a name is never more than text.
"""

import base64
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.drawn import as_csv, no_formula
from latentbit.figures.style import svg

NOTHING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell of a table; with a `value` it sorts as a number."""

    text: str
    value: float | None = None
    key: str = ""
    """run/path/in/the/json of the value."""
    small: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: headings, rows of cells, and perhaps a last row that does not sort."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    foot: Sequence[Cell] = ()

    def csv(self) -> str:
        """With full numbers."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([no_formula(heading) for heading in self.headings])
        for row in [*self.rows, *([self.foot] if self.foot else [])]:
            writer.writerow(
                [no_formula(cell.text) if cell.value is None else repr(cell.value) for cell in row]
            )
        return file.getvalue()

    def latex(self) -> str:
        """A tabular of booktabs, as the page shows it."""
        columns = "".join("l" if left else "r" for left in self.left)
        lines = [f"% {' '.join(self.caption.split())}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        lines += [" & ".join(map(_latex, self.headings)) + r" \\", r"\midrule"]
        lines += [" & ".join(_latex(cell.text) for cell in row) + r" \\" for row in self.rows]
        if self.foot:
            lines += [r"\midrule", " & ".join(_latex(cell.text) for cell in self.foot) + r" \\"]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

    @property
    def downloads(self) -> list[tuple[str, str, str]]:
        """Name of the link, of the file, and its address, which holds all of it."""
        name = _file_name(self.caption)
        return [
            ("CSV", f"{name}.csv", _address(self.csv(), "text/csv")),
            ("LaTeX", f"{name}.tex", _address(self.latex(), "text/plain")),
        ]

    @property
    def left(self) -> list[bool]:
        """Columns of words, which stand on the left."""
        return [i == 0 or all(row[i].value is None for row in self.rows) for i in range(len(self.headings))]


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "†": r"$^\dagger$", "‡": r"$^\ddagger$",
    "×": r"$\times$", "–": "--", "\n": " ",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}  # fmt: skip


def _latex(words: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in words)


def _file_name(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60] or "table"


def _address(content: str, kind: str) -> str:
    """A data: URL, so that the page stays one file."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(content.encode()).decode()}"


@dataclass(frozen=True)
class Section:
    """One part of the page; `anchor` is its address."""

    anchor: str
    title: str
    html: Markup


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> Markup:
    """A template filled in; what is not Markup is escaped."""
    return Markup(_environment().get_template(template).render(**values))


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
        return Cell(NOTHING)
    return Cell(form.format(factor * value) + unit, float(value), f"{analysis.name}/{path}")


def percent(analysis: Analysis, path: str) -> Cell:
    """A share, as per cent."""
    return number(analysis, path, "{:.2f}", 100)


def text(words: object) -> Cell:
    """Plain words."""
    return Cell(str(words))


class Figures:
    """Turns figures into SVG elements and gives each ids of its own."""

    def __init__(self) -> None:
        self.n = 0

    def draw(self, figure: Figure, alt: str) -> Markup:
        """`alt` says in words what the picture shows."""
        self.n += 1
        drawing = svg(figure, prefix=f"f{self.n}", alt=alt)
        drawing = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", drawing, count=1)  # CSS does
        if not (numbers := as_csv(figure)):
            return Markup(drawing)
        name, address = f"figure-{self.n}.csv", _address(numbers, "text/csv")
        link = Markup('<p class="take"><a download="{}" href="{}">data of this figure, CSV</a></p>')
        return Markup(drawing) + link.format(name, address)
