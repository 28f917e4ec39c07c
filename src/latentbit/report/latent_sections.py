"""The sections on both views: reconstruction errors, representations, feature maps, latent weights."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from latentbit.analyze.stored import Analysis
from latentbit.figures import feature_maps as maps_figure
from latentbit.figures import reconstruction as reconstruction_figure
from latentbit.figures import representations as representations_figure
from latentbit.figures import training as training_figure
from latentbit.figures import weights as weights_figure
from latentbit.report.markup import NOTHING, Cell, Figures, Grid, Section, number, percent, render, text
from latentbit.views.numbers import BY_KEY, W_DAGGER, W

Runs = Sequence[Analysis]


def reconstruction(runs: Runs, figures: Figures) -> Section | None:
    """R_l per layer."""
    latent = [run for run in runs if "reconstruction" in run.numbers]
    if not latent:
        return None
    longest = max(latent, key=lambda run: len(run.numbers["reconstruction"]["layers"]))
    rows = []
    for i, name in enumerate(longest.numbers["reconstruction"]["layers"]):
        cells = [
            _layer_error(run, i, what) for run in latent for what in ("layers", "activated", "unexplained")
        ]
        rows.append([text(name), Cell(str(i + 1), float(i + 1)), *cells])
    average = [
        number(run, f"reconstruction/{what}", "{:.3f}")
        for run in latent
        for what in ("average", "average_activated", "average_unexplained")
    ]
    html = render(
        "reconstruction.html",
        errors=figures.draw(
            reconstruction_figure.errors(latent),
            f"Reconstruction error by layer; averages: {_averages(latent, 'average')}.",
        ),
        unexplained=figures.draw(
            reconstruction_figure.errors(latent, "unexplained"),
            f"Unexplained share by layer; averages: {_averages(latent, 'average_unexplained')}.",
        ),
        grid=Grid(
            ["layer", "no.", *(name for run in latent for name in (run.name, "activated", "unexplained"))],
            rows,
            "Feature reconstruction error by binary layer, behind its BatchNorm and activation, and the share of B's "
            "output that W† does not explain",
            [text("average"), Cell(""), *average],
        ),
    )
    return Section("reconstruction", "Reconstruction", html)


def _averages(runs: Runs, which: str) -> str:
    return ", ".join(f"{run.name} {run.numbers['reconstruction'][which]:.4f}" for run in runs)


def _layer_error(run: Analysis, i: int, what: str) -> Cell:
    names = list(run.numbers["reconstruction"]["layers"])
    return number(run, f"reconstruction/{what}/{names[i]}", "{:.3f}") if i < len(names) else Cell(NOTHING)


def representations(runs: Runs, figures: Figures) -> Section:
    """t-SNE maps and how far classes are apart."""
    shown: list[tuple[Analysis, list[dict[str, Any]]]] = []
    rows = []
    for run in runs:
        maps = []
        for key in run.numbers["representations"]["views"]:
            one, path = BY_KEY[key], f"representations/views/{key}"
            measures = [number(run, f"{path}/{what}", "{:.3f}") for what in ("silhouette", "distance_ratio")]
            rows.append([text(run.name), text(one.name), *measures])
            facts = f"silhouette {measures[0].text}, intra/inter {measures[1].text}"
            alt = f"t-SNE map of features of {one.name} of {run.name}, coloured by class: {facts}."
            drawing = figures.draw(representations_figure.tsne_map(run, key), alt)
            maps.append({"number": one, "facts": facts, "drawing": drawing})
        shown.append((run, maps))
    html = render(
        "representations.html",
        n=f"{runs[0].numbers['representations']['n']:,}",
        seed=runs[0].numbers["asked"]["seed"],
        runs=shown,
        grid=Grid(["run", "view", "silhouette", "intra / inter"], rows, "How well classes are apart"),
    )
    return Section("representations", "Representations", html)


def feature_maps(runs: Runs, figures: Figures) -> Section | None:
    """One layer and image in three networks."""
    shown, rows = [], []
    for run in runs:
        if "feature_maps" not in run.numbers:
            continue
        stale, latent = (percent(run, f"feature_maps/agreement/{one.key}") for one in (W, W_DAGGER))
        rows.append([text(run.name), text(run.numbers["feature_maps"]["layer"]), stale, latent])
        agree = f"signs of W agree with B at {stale.text} % of places, of W† at {latent.text} %"
        shown.append((run, figures.draw(maps_figure.rows(run), f"Feature maps of {run.name}: {agree}.")))
    if not shown:
        return None
    headings = ["run", "layer", f"{W.name}, %", f"{W_DAGGER.name}, %"]
    grid = Grid(headings, rows, "Share of these activations with the sign they have in B")
    return Section("maps", "Feature maps", render("feature_maps.html", runs=shown, grid=grid))


def flips(runs: Runs, figures: Figures) -> Markup | None:
    """How many bits change from epoch to epoch; nothing if no run has logged it."""
    logged = [run for run in runs if run.has_latent and run.numbers["weights"]["flip_rate"]]
    if not logged:
        return None
    curve = training_figure.curves(logged, "flip_rate", "bits flipped per epoch", percent=True)
    ends = ", ".join(f"{run.name} {100 * run.numbers['weights']['flip_rate'][-1][1]:.2f} %" for run in logged)
    return figures.draw(curve, f"Share of all bits whose sign changed over an epoch. Last epoch: {ends}.")


def weights(runs: Runs, figures: Figures) -> Section | None:
    """Latent weights and flips."""
    latent = [run for run in runs if "weights" in run.numbers]
    if not latent:
        return None
    bits = flips(runs, figures) if len(runs) == 1 else None
    shown = []
    for run in latent:
        alt = f"Histograms of the latent weights of {run.name}, one ridge for each binary layer."
        shown.append((run, figures.draw(weights_figure.ridges(run), alt), _weights_grid(run)))
    return Section("weights", "Latent weights", render("weights.html", flips=bits, runs=shown))


def _weights_grid(run: Analysis) -> Grid:
    rows = []
    for i, layer in enumerate(run.numbers["weights"]["layers"]):
        path = f"weights/layers/{i}"
        shares = [percent(run, f"{path}/{what}") for what in ("near_zero", "beyond_one", "positive")]
        size = number(run, f"{path}/mean_abs", "{:.4f}")
        rows.append([text(layer["name"]), number(run, f"{path}/n", "{:,.0f}"), size, *shares])
    headings = ["layer", "weights", "mean |W|", "near zero, %", "|W| > 1, %", "positive, %"]
    return Grid(headings, rows, f"{run.name}: latent weights by layer; near zero is |W| < 0.1 mean |W|")
