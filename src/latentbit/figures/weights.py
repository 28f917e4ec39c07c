"""Latent weights of every binary layer as a ridge, the first layer on top."""

import numpy as np
from matplotlib.figure import Figure

from latentbit.analyze.stored import Analysis
from latentbit.figures.style import BLUE, INK, MUTED, PAPER, label, new_figure, styled


@styled
def ridges(analysis: Analysis) -> Figure:
    """Density of W per layer; bits flip at the line in the middle."""
    found = analysis.numbers["weights"]
    layers, limit = found["layers"], found["limit"]
    figure = new_figure(1.0 + 0.26 * len(layers))
    axes = figure.add_subplot()
    bins = len(layers[0]["counts"])
    centres = (np.arange(bins) + 0.5) / bins * 2 * limit - limit
    for row, layer in enumerate(layers):
        density = np.array(layer["counts"]) / max(layer["counts"])
        base = float(row)
        axes.fill_between(
            centres, base, base - 1.6 * density, color=BLUE, alpha=0.35, linewidth=0, zorder=row + 1
        )
        axes.plot(centres, base - 1.6 * density, color=PAPER, linewidth=2.6, zorder=row + 1.1)
        axes.plot(centres, base - 1.6 * density, color=BLUE, linewidth=1.2, zorder=row + 1.2)
    axes.axvline(0, color=INK, alpha=0.35, linewidth=0.9, zorder=len(layers) + 2)
    axes.set_yticks(
        range(len(layers)), [label(layer["name"]) for layer in layers], fontsize=11.5, color=MUTED
    )
    axes.set_ylim(len(layers) - 0.6, -1.8)
    axes.set_xlim(-limit, limit)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("latent weight W")
    return figure
