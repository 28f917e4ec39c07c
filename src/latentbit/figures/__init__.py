"""Drawings of an analysis: one module per figure, data in, matplotlib Figure out.

figures_of(analysis) names the figures of one run; save_figures writes them as SVG and PNG, draw_once does so
unless they are there; analyze_and_draw starts from run directories.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from latentbit.analyze import analyze_once
from latentbit.analyze.stages import Stages
from latentbit.analyze.stored import FOLDER, Analysis
from latentbit.atomic import atomic_write
from latentbit.figures import (
    accuracy,
    feature_maps,
    mistakes,
    reconstruction,
    representations,
    training,
    weights,
)
from latentbit.figures.style import png, svg

__all__ = ["analyze_and_draw", "draw_once", "figures_of", "save_figures"]


def figures_of(analysis: Analysis) -> dict[str, Figure]:
    """Every figure that this run can give, by file name."""
    one = [analysis]
    numbers = analysis.numbers
    found = {"accuracy": accuracy.accuracies(one), "training": training.accuracy_curves(one)}
    found["loss"] = training.curves(one, "loss", "training loss")
    for key in numbers["representations"]["views"]:
        found[f"tsne_{key.lower()}"] = representations.tsne_map(analysis, key)
    if numbers["mistakes"]["confusion"] is not None:
        found["confusion"] = mistakes.confusion(analysis)
    if numbers["mistakes"]["worst"]:
        found["worst"] = mistakes.contact_sheet(analysis)
    if analysis.has_latent:
        found["reconstruction"] = reconstruction.errors(one)
        found["unexplained"] = reconstruction.errors(one, "unexplained")
        found["flip_rate"] = training.curves(
            one, "flip_rate", "share of bits flipped per epoch", percent=True
        )
        found["weights"] = weights.ridges(analysis)
    if "feature_maps" in numbers:
        found["feature_maps"] = feature_maps.rows(analysis)
    return found


def save_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """name.svg and name.png of each; the paths of the PNGs."""
    paths = []
    for name, figure in figures.items():
        with atomic_write(folder / f"{name}.svg") as file:
            file.write(svg(figure).encode())
        paths.append(folder / f"{name}.png")
        with atomic_write(paths[-1]) as file:
            file.write(png(figure))
    return paths


def draw_once(analysis: Analysis, folder: Path) -> None:
    """Draw the figures of a stored analysis into its folder unless they are newer than it."""
    made = [path.stat().st_mtime for path in folder.glob("*.png")]
    if not made or min(made) < (folder / "analysis.json").stat().st_mtime:
        save_figures(figures_of(analysis), folder)


def analyze_and_draw(runs: Sequence[Path], **options: Any) -> list[Analysis]:
    """Analyse runs and leave the figures beside each analysis; options are those of analyze_once."""
    found = []
    with Stages() as stages:
        for run in runs:
            analysis = analyze_once(run, stages=stages, **options)
            with stages.stage(f"drawing {analysis.name}"):
                draw_once(analysis, run / FOLDER)
            found.append(analysis)
    return found
