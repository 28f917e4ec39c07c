"""The sections on both views: reconstruction errors, representations, feature maps, latent weights."""

from collections.abc import Sequence
from html import escape

from latentbit.analyze.stored import Analysis
from latentbit.figures import feature_maps as maps_figure
from latentbit.figures import reconstruction as reconstruction_figure
from latentbit.figures import representations as representations_figure
from latentbit.figures import training as training_figure
from latentbit.figures import weights as weights_figure
from latentbit.figures.style import VIEW_NAMES
from latentbit.report.markup import Cell, Figures, Section, number, percent, table, text

Runs = Sequence[Analysis]


def reconstruction(runs: Runs, figures: Figures) -> Section | None:
    """R_l per layer."""
    latent = [run for run in runs if "reconstruction" in run.numbers]
    if not latent:
        return None
    depth = max(len(run.numbers["reconstruction"]["layers"]) for run in latent)
    longest = next(run for run in latent if len(run.numbers["reconstruction"]["layers"]) == depth)
    rows = []
    for i, name in enumerate(longest.numbers["reconstruction"]["layers"]):
        cells = [_layer_error(run, i, what) for run in latent for what in ("layers", "unexplained")]
        rows.append([text(name), Cell(str(i + 1), float(i + 1)), *cells])
    average = [
        number(run, f"reconstruction/{what}", "{:.3f}")
        for run in latent
        for what in ("average", "average_unexplained")
    ]
    pictures = [
        figures.html(
            reconstruction_figure.errors(latent),
            f"Reconstruction error by layer; averages: {_averages(latent, 'average')}.",
            "R<sub>l</sub> = mean of (W† output &minus; B output)² at each binary layer.",
        ),
        figures.html(
            reconstruction_figure.errors(latent, "unexplained"),
            f"Unexplained share by layer; averages: {_averages(latent, 'average_unexplained')}.",
            "Share of B's output that no multiple of W†'s output explains.",
        ),
    ]
    grid = table(
        ["layer", "no.", *(name for run in latent for name in (run.name, "unexplained"))],
        rows,
        "Feature reconstruction error by binary layer, and the share of B's output that W† does not explain",
        [text("average"), Cell(""), *average],
    )
    explained = (
        "<p>How far the outputs of B and W† are apart, layer by layer. A smaller error is not a better network: "
        "minimising it directly costs accuracy (paper, Table 2). The error also measures that a sign is larger than "
        "the value it replaces, a factor that batch norm takes out. What no factor explains is 0 where both views say "
        "the same and 1 where they have nothing in common.</p>"
    )
    drawn = f'<div class="figures">{"".join(pictures)}</div>'
    return Section("reconstruction", "Reconstruction", explained + drawn + grid)


def _averages(runs: Runs, which: str) -> str:
    return ", ".join(f"{run.name} {run.numbers['reconstruction'][which]:.4f}" for run in runs)


def _layer_error(run: Analysis, i: int, what: str) -> Cell:
    names = list(run.numbers["reconstruction"]["layers"])
    return number(run, f"reconstruction/{what}/{names[i]}", "{:.3f}") if i < len(names) else Cell("&ndash;")


def representations(runs: Runs, figures: Figures) -> Section:
    """t-SNE maps and how far classes are apart."""
    parts, rows = [], []
    for run in runs:
        pictures = []
        for key in run.numbers["representations"]["views"]:
            path = f"representations/views/{key}"
            silhouette, ratio = (
                number(run, f"{path}/silhouette", "{:.3f}"),
                number(run, f"{path}/distance_ratio", "{:.3f}"),
            )
            rows.append([text(run.name), text(VIEW_NAMES[key]), silhouette, ratio])
            facts = f"silhouette {silhouette.html}, intra/inter {ratio.html}"
            caption = f"<b>{escape(VIEW_NAMES[key])}</b> &middot; {facts}"
            alt = f"t-SNE map of features of {VIEW_NAMES[key]} of {run.name}, coloured by class: {facts}."
            pictures.append(figures.html(representations_figure.tsne_map(run, key), alt, caption))
        title = f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else ""
        parts.append(f'{title}<div class="pair">{"".join(pictures)}</div>')
    n, seed = runs[0].numbers["representations"]["n"], runs[0].numbers["asked"]["seed"]
    explained = (
        f"<p>What the classifier sees of {n:,} test images, laid out by t-SNE with the same settings and seed "
        f"{seed}. The numbers are of the features themselves, not of the map: silhouette is better when higher, the "
        "mean distance inside classes over that between classes when lower.</p>"
    )
    grid = table(["run", "view", "silhouette", "intra / inter"], rows, "How well classes are apart")
    return Section("representations", "Representations", explained + "".join(parts) + grid)


def feature_maps(runs: Runs, figures: Figures) -> Section | None:
    """One layer and image in three networks."""
    shown = [run for run in runs if "feature_maps" in run.numbers]
    if not shown:
        return None
    pictures, rows = [], []
    for run in shown:
        facts = run.numbers["feature_maps"]
        stale, latent = (percent(run, f"feature_maps/agreement/{key}") for key in ("W", "W_dagger"))
        rows.append([text(run.name), text(facts["layer"]), stale, latent])
        where = f"input of <code>{escape(facts['layer'])}</code>, test image {facts['image']}"
        caption = f"<b>{escape(run.name)}</b>, {where}"
        agree = f"signs of W, stale, agree with B at {stale.html} % of places, of W† at {latent.html} %"
        alt = f"Feature maps of {run.name}: {agree}."
        pictures.append(figures.html(maps_figure.rows(run), alt, caption))
    explained = (
        "<p>What one binary convolution reads for one image: dark is &minus;1, bright is +1. Stale statistics shift "
        "whole channels; renewed ones bring the pattern back, with shades that sign does not have.</p>"
    )
    grid = table(
        ["run", "layer", "W, stale, %", "W†, %"],
        rows,
        "Share of these activations with the sign they have in B",
    )
    return Section("maps", "Feature maps", f'{explained}<div class="figures">{"".join(pictures)}</div>{grid}')


def flips(runs: Runs, figures: Figures) -> list[str]:
    """How many bits change from epoch to epoch; nothing if no run has logged it."""
    logged = [run for run in runs if run.has_latent and run.numbers["weights"]["flip_rate"]]
    if not logged:
        return []
    curve = training_figure.curves(logged, "flip_rate", "bits flipped per epoch", percent=True)
    ends = ", ".join(f"{run.name} {100 * run.numbers['weights']['flip_rate'][-1][1]:.2f} %" for run in logged)
    caption = "Share of all bits whose sign changed over an epoch."
    return [figures.html(curve, f"{caption} Last epoch: {ends}.", caption)]


def weights(runs: Runs, figures: Figures) -> Section | None:
    """Latent weights and flips."""
    latent = [run for run in runs if "weights" in run.numbers]
    if not latent:
        return None
    pictures, tables = [], []
    if len(runs) == 1:
        pictures += flips(runs, figures)
    for run in latent:
        caption = f"<b>{escape(run.name)}</b>: latent weights of each layer; a bit flips where its weight crosses 0."
        alt = f"Histograms of the latent weights of {run.name}, one ridge for each binary layer."
        pictures.append(figures.html(weights_figure.ridges(run), alt, caption))
        rows = []
        for i, layer in enumerate(run.numbers["weights"]["layers"]):
            path = f"weights/layers/{i}"
            shares = [percent(run, f"{path}/{what}") for what in ("near_zero", "beyond_one", "positive")]
            size = number(run, f"{path}/mean_abs", "{:.4f}")
            rows.append([text(layer["name"]), number(run, f"{path}/n", "{:,.0f}"), size, *shares])
        headings = ["layer", "weights", "mean |W|", "near zero, %", "|W| > 1, %", "positive, %"]
        grid = table(headings, rows, f"{run.name}: latent weights by layer; near zero is |W| < 0.1 mean |W|")
        tables.append(f"<details><summary>Weights of {escape(run.name)} by layer</summary>{grid}</details>")
    html = f'<div class="figures">{"".join(pictures)}</div>{"".join(tables)}'
    return Section("weights", "Latent weights", html)
