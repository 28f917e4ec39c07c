"""The sections of the page, each from the analyses of all runs; None where no run has anything to show."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from latentbit.analyze.stored import Analysis
from latentbit.figures import accuracy as accuracy_figure
from latentbit.figures import feature_maps as maps_figure
from latentbit.figures import mistakes as mistakes_figure
from latentbit.figures import reconstruction as reconstruction_figure
from latentbit.figures import representations as representations_figure
from latentbit.figures import training as training_figure
from latentbit.figures import weights as weights_figure
from latentbit.figures.style import VIEW_NAMES
from latentbit.report.markup import Cell, Figures, number, table, text

Runs = Sequence[Analysis]


@dataclass(frozen=True)
class Section:
    """One part of the page; `anchor` is its address."""

    anchor: str
    title: str
    html: str


def percent(analysis: Analysis, path: str) -> Cell:
    """A share, as per cent."""
    return number(analysis, path, "{:.2f}", 100)


def accuracy(runs: Runs, figures: Figures) -> Section:
    """B, W and W-dagger with intervals."""
    latent = any(run.has_latent for run in runs)
    views = [key for key in VIEW_NAMES if latent or key == "B"]
    rows = []
    for run in runs:
        row = [text(run.name)]
        for key in views:
            row.append(percent(run, f"accuracy/{key}/accuracy"))
            row.append(_interval(run, key))
        rows.append([*row, number(run, "accuracy/B/total", "{:,.0f}"), number(run, "epoch", "{:.0f}")])
    headings = ["run"]
    for key in views:
        headings += [f"{VIEW_NAMES[key]}, %", "95 % interval"]
    words = "; ".join(f"{run.name}: {_spoken(run)}" for run in runs)
    picture = figures.html(
        accuracy_figure.accuracies(runs),
        f"Test accuracies. {words}.",
        "Test accuracy of each view; the bar through a mark is its 95 % interval.",
    )
    explained = (
        "<p><b>B</b> is the binary network as it ships. <b>W, stale</b> puts the latent weights in its place but "
        "keeps the batch statistics of B. <b>W†</b> has the same latent weights, statistics of its own and hard "
        "tanh for sign.</p>"
        if latent
        else ""
    )
    grid = table(
        [*headings, "images", "epoch"], rows, "Top-1 on the whole test set, and the epoch of the weights"
    )
    return Section("accuracy", "Accuracy", f'{explained}<div class="figures wide">{picture}</div>{grid}')


def _interval(run: Analysis, key: str) -> Cell:
    found = run.numbers["accuracy"].get(key)
    if found is None:
        return Cell("&ndash;")
    low, high = found["interval"]
    return Cell(f"<small>{100 * low:.1f} to {100 * high:.1f}</small>")


def _spoken(run: Analysis) -> str:
    scores = run.numbers["accuracy"]
    return ", ".join(f"{VIEW_NAMES[key]} {100 * scores[key]['accuracy']:.2f} %" for key in scores)


def training(runs: Runs, figures: Figures) -> Section | None:
    """Curves over epochs."""
    if not any(run.numbers["history"] for run in runs):
        return None
    ends = "; ".join(
        f"{run.name} ends at {100 * run.numbers['history'][-1].get('accuracy_b', 0):.1f} % and loss "
        f"{run.numbers['history'][-1]['loss']:.3f}"
        for run in runs
        if run.numbers["history"]
    )
    what = "Accuracy of the views" if len(runs) == 1 else "Test accuracy of B"
    pictures = [
        figures.html(
            training_figure.accuracy_curves(runs), f"{what} over epochs: {ends}.", f"{what} over epochs."
        ),
        figures.html(
            training_figure.curves(runs, "loss", "training loss"),
            f"Training loss over epochs: {ends}.",
            "Training loss, all terms together.",
        ),
    ]
    if len(runs) > 1 and any(run.has_latent for run in runs):
        caption = "Test accuracy of W†: the latent view as it was during training."
        curve = training_figure.curves(runs, "accuracy_w_dagger", "test accuracy of W†", percent=True)
        pictures.append(figures.html(curve, caption, caption))
    return Section("training", "Training", f'<div class="figures">{"".join(pictures)}</div>')


def reconstruction(runs: Runs, figures: Figures) -> Section | None:
    """R_l per layer."""
    latent = [run for run in runs if "reconstruction" in run.numbers]
    if not latent:
        return None
    depth = max(len(run.numbers["reconstruction"]["layers"]) for run in latent)
    longest = next(run for run in latent if len(run.numbers["reconstruction"]["layers"]) == depth)
    rows = []
    for i, name in enumerate(longest.numbers["reconstruction"]["layers"]):
        cells = [_layer_error(run, i) for run in latent]
        rows.append([text(name), Cell(str(i + 1), float(i + 1)), *cells])
    average = [number(run, "reconstruction/average", "{:.5f}") for run in latent]
    words = ", ".join(f"{run.name} {run.numbers['reconstruction']['average']:.4f}" for run in latent)
    picture = figures.html(
        reconstruction_figure.errors(latent),
        f"Reconstruction error by layer; averages: {words}.",
        "R<sub>l</sub> = mean of (W† output &minus; B output)² at each binary layer.",
    )
    grid = table(
        ["layer", "no.", *(run.name for run in latent)],
        rows,
        "Feature reconstruction error by binary layer",
        [text("average"), Cell(""), *average],
    )
    explained = (
        "<p>How far the outputs of B and W† are apart, layer by layer. A smaller error is not a better network: "
        "minimising it directly costs accuracy (paper, Table 2).</p>"
    )
    return Section(
        "reconstruction", "Reconstruction", f'{explained}<div class="figures">{picture}{grid}</div>'
    )


def _layer_error(run: Analysis, i: int) -> Cell:
    names = list(run.numbers["reconstruction"]["layers"])
    return number(run, f"reconstruction/layers/{names[i]}", "{:.5f}") if i < len(names) else Cell("&ndash;")


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


def weights(runs: Runs, figures: Figures) -> Section | None:
    """Latent weights and flips."""
    latent = [run for run in runs if "weights" in run.numbers]
    if not latent:
        return None
    pictures, tables = [], []
    if any(run.numbers["weights"]["flip_rate"] for run in latent):
        curve = training_figure.curves(latent, "flip_rate", "bits flipped per epoch", percent=True)
        ends = ", ".join(f"{r.name} {100 * r.numbers['weights']['flip_rate'][-1][1]:.2f} %" for r in latent)
        caption = "Share of all bits whose sign changed over an epoch."
        pictures.append(figures.html(curve, f"{caption} Last epoch: {ends}.", caption))
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


def mistakes(runs: Runs, figures: Figures) -> Section:
    """Confusions and the worst images of B."""
    parts = []
    for run in runs:
        found, classes, pictures = run.numbers["mistakes"], run.numbers["classes"], []
        pairs = [(classes[a], classes[b], n) for a, b, n in found["pairs"]]
        if found["confusion"] is not None:
            most = ", ".join(f"{a} called {b} {n} times" for a, b, n in pairs[:3]) or "none"
            alt = f"Confusion matrix of B of {run.name}. Most frequent: {most}."
            caption = "Confusion matrix of B: rows are the true class, columns the answer."
            pictures.append(figures.html(mistakes_figure.confusion(run), alt, caption))
        if found["worst"]:
            alt = f"Contact sheet of the {len(found['worst'])} test images with the highest loss of B of {run.name}."
            caption = "The worst by loss: true class above, the wrong answer and its probability below."
            pictures.append(figures.html(mistakes_figure.contact_sheet(run), alt, caption))
        rows = [
            [text(a), text(b), number(run, f"mistakes/pairs/{i}/2", "{:.0f}")]
            for i, (a, b, _) in enumerate(pairs)
        ]
        grid = table(["is", "called", "times"], rows, f"{run.name}: most frequent confusions") if rows else ""
        title = f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else ""
        hidden = f"<details><summary>Most frequent confusions</summary>{grid}</details>" if grid else ""
        parts.append(f'{title}<div class="figures">{"".join(pictures)}</div>{hidden}')
    return Section("mistakes", "Mistakes", "".join(parts))


def cost(runs: Runs, figures: Figures) -> Section:
    """Parameters, memory and operations for one image."""
    rows = []
    for run in runs:
        total = "cost/total"
        rows.append(
            [
                text(run.name),
                number(run, f"{total}/binary_params", "{:,.0f}"),
                number(run, f"{total}/real_params", "{:,.0f}"),
                number(run, "cost/mbit", "{:.3f}"),
                number(run, "cost/float_mbit", "{:.3f}"),
                number(run, "cost/ratio", "{:.1f}", unit="×"),
                number(run, f"{total}/bops", "{:,.2f}", 1e-6),
                number(run, f"{total}/macs", "{:,.2f}", 1e-6),
                number(run, f"{total}/elementwise", "{:,.2f}", 1e-6),
            ]
        )
    headings = [
        "run",
        "1-bit weights",
        "32-bit values",
        "Mbit",
        "Mbit at 32 bit",
        "smaller by",
        "M BOPs",
        "M MACs",
    ]
    html = table([*headings, "M element-wise"], rows, "Inference of one image")
    for run in runs:
        kinds = [
            [text(kind), *_amounts(run, f"cost/by_kind/{kind}")] for kind in run.numbers["cost"]["by_kind"]
        ]
        grid = table(
            ["kind", "1-bit weights", "32-bit values", "kbit", "k BOPs", "k MACs", "k element-wise"],
            kinds,
            f"{run.name}: by kind of layer",
            [text("total"), *_amounts(run, "cost/total")],
        )
        html += f"<details><summary>Cost of {escape(run.name)} by kind of layer</summary>{grid}</details>"
    explained = (
        "<p>A BOP is a multiply-add of two bits, a MAC one of real numbers; batch norm, activations, additions and "
        "pools count as element-wise work.</p>"
    )
    return Section("cost", "Cost", explained + html)


def _amounts(run: Analysis, path: str) -> list[Cell]:
    plain = [number(run, f"{path}/{what}", "{:,.0f}") for what in ("binary_params", "real_params")]
    return plain + [
        number(run, f"{path}/{what}", "{:,.1f}", 1e-3) for what in ("n_bits", "bops", "macs", "elementwise")
    ]


ALL = (accuracy, training, reconstruction, representations, feature_maps, weights, mistakes, cost)
