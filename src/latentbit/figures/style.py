"""One look for all figures. In SVG the greys become CSS variables, so that a page can be light or dark.

Colours are Okabe and Ito's or near them, safe for colour-blind readers; runs also differ by marker and dashes.
"""

import io
import re
import warnings
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import ParamSpec

from matplotlib import rc_context
from matplotlib.figure import Figure

from latentbit.views.numbers import BY_KEY

INK, MUTED, GRID, PAPER = "#1b2026", "#69717b", "#dde1e6", "#fdfdfc"
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--panel"}

BLUE, VERMILLION, GREEN, PURPLE = "#0b78b8", "#d55e00", "#009e73", "#c46fa0"
VIEW_COLOURS = dict(zip(BY_KEY, (BLUE, VERMILLION, GREEN), strict=True))
VIEW_MARKERS = dict(zip(BY_KEY, ("o", "X", "D"), strict=True))

_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, "#b8860b", "#7a7ad8", "#5c9e31", "#a0522d")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))

SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11.5,
    "text.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.titlesize": 12,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 11.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "latentbit",
}

WIDTH = 4.7
"""Inches; a phone of 390 pixels shows a point as a pixel, and nothing in a figure is smaller than 11 points."""

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A function that draws, made to draw in the look of the house."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with rc_context(SETTINGS):  # type: ignore[arg-type]
            return draw(*args, **kwargs)

    return inside


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure, outside pyplot's list of open ones."""
    return Figure(figsize=(width, height), layout="constrained")


def label(name: object, limit: int = 40) -> str:
    """A name as text in a figure: long ones lose their middle, and a dollar sign does not begin a formula."""
    words = " ".join(str(name).split())
    if len(words) > limit:
        half = (limit - 1) // 2
        words = f"{words[: limit - 1 - half]}…{words[-half:]}"
    return words.replace("$", r"\$")


def run_colour(i: int) -> str:
    """Colour of the i-th run."""
    return _COLOURS[i % len(_COLOURS)]


def run_marker(i: int) -> str:
    """Marker of the i-th run."""
    return _MARKERS[i % len(_MARKERS)]


def run_dashes(i: int) -> str | tuple[int, tuple[float, ...]]:
    """Line style of the i-th run."""
    return _DASHES[i % len(_DASHES)]


def png(figure: Figure, dpi: int = 160) -> bytes:
    """The figure on white paper."""
    file = io.BytesIO()
    with rc_context(SETTINGS):  # type: ignore[arg-type]
        figure.savefig(file, format="png", dpi=dpi, facecolor="white")
    return file.getvalue()


def svg(figure: Figure, prefix: str = "", alt: str = "") -> str:
    """An <svg> element with themed greys. `prefix` keeps ids apart on a page with several."""
    file = io.StringIO()
    with rc_context(SETTINGS), warnings.catch_warnings():  # type: ignore[arg-type]
        # Text stays text, and a browser has fonts for all of it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(file, format="svg", dpi=220, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, count=1, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--sans, sans-serif)", text)
    if prefix:
        text = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{prefix}-", text)
    if alt:
        text = text.replace("<svg", f'<svg role="img" aria-label="{escape(alt, quote=True)}"', 1)
    return text
