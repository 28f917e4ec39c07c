"""The sections of the page, each from the analyses of all runs; None where no run has anything to show."""

from collections.abc import Sequence
from html import escape

from latentbit.analyze.stored import Analysis
from latentbit.figures import accuracy as accuracy_figure
from latentbit.figures import mistakes as mistakes_figure
from latentbit.figures import training as training_figure
from latentbit.figures.style import VIEW_NAMES
from latentbit.report.latent_sections import feature_maps, flips, reconstruction, representations, weights
from latentbit.report.markup import Cell, Figures, Section, number, percent, table, text

Runs = Sequence[Analysis]


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
    if len(runs) > 1:  # that of a single run stands beside the histogram of its weights
        pictures += flips(runs, figures)
    return Section("training", "Training", f'<div class="figures">{"".join(pictures)}</div>')


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
