"""The sections of the page, each from the analyses of all runs; None where no run has anything to show."""

from collections.abc import Sequence

from latentbit.analyze.stored import Analysis
from latentbit.figures import accuracy as accuracy_figure
from latentbit.figures import mistakes as mistakes_figure
from latentbit.figures import training as training_figure
from latentbit.report.latent_sections import feature_maps, flips, reconstruction, representations, weights
from latentbit.report.markup import NOTHING, Cell, Figures, Grid, Section, number, percent, render, text
from latentbit.views.numbers import BY_KEY, NUMBERS, W_DAGGER, B, Number

Runs = Sequence[Analysis]


def accuracy(runs: Runs, figures: Figures) -> Section:
    """B, W and W-dagger with intervals."""
    latent = any(run.has_latent for run in runs)
    shown = NUMBERS if latent else (B,)
    rows = []
    for run in runs:
        pairs = ((percent(run, f"accuracy/{one.key}/accuracy"), _interval(run, one)) for one in shown)
        cells = [cell for pair in pairs for cell in pair]
        counts = [number(run, "accuracy/B/total", "{:,.0f}"), number(run, "epoch", "{:.0f}")]
        rows.append([text(run.name), *cells, *counts])
    views = [heading for one in shown for heading in (f"{one.name}, %", "95 % interval")]
    words = "; ".join(f"{run.name}: {_spoken(run)}" for run in runs)
    html = render(
        "accuracy.html",
        latent=latent,
        numbers=NUMBERS,
        drawing=figures.draw(accuracy_figure.accuracies(runs), f"Test accuracies. {words}."),
        grid=Grid(
            ["run", *views, "images", "epoch"],
            rows,
            "Top-1 on the whole test set, and the epoch of the weights",
        ),
    )
    return Section("accuracy", "Accuracy", html)


def _interval(run: Analysis, one: Number) -> Cell:
    found = run.numbers["accuracy"].get(one.key)
    if found is None:
        return Cell(NOTHING)
    low, high = found["interval"]
    return Cell(f"{100 * low:.1f} to {100 * high:.1f}", small=True)


def _spoken(run: Analysis) -> str:
    scores = run.numbers["accuracy"].items()
    return ", ".join(f"{BY_KEY[key].name} {100 * score['accuracy']:.2f} %" for key, score in scores)


def training(runs: Runs, figures: Figures) -> Section | None:
    """Curves over epochs."""
    if not any(run.numbers["history"] for run in runs):
        return None
    ends = "; ".join(
        f"{run.name} ends at {100 * run.numbers['history'][-1].get(B.metric, 0):.1f} % and loss "
        f"{run.numbers['history'][-1]['loss']:.3f}"
        for run in runs
        if run.numbers["history"]
    )
    what = "Accuracy of the views" if len(runs) == 1 else f"Test accuracy of {B.name}"
    accuracies = figures.draw(training_figure.accuracy_curves(runs), f"{what} over epochs: {ends}.")
    losses = figures.draw(
        training_figure.curves(runs, "loss", "training loss"), f"Training loss over epochs: {ends}."
    )
    latent = None
    if len(runs) > 1 and any(run.has_latent for run in runs):
        label = f"test accuracy of {W_DAGGER.name}"
        curve = training_figure.curves(runs, W_DAGGER.metric, label, percent=True)
        latent = figures.draw(curve, f"Over epochs: {label}, as it was during training.")
    html = render(
        "training.html",
        what=what,
        accuracy=accuracies,
        loss=losses,
        latent=latent,
        dagger=W_DAGGER,
        # That of a single run stands beside the histogram of its weights.
        flips=flips(runs, figures) if len(runs) > 1 else None,
    )
    return Section("training", "Training", html)


def mistakes(runs: Runs, figures: Figures) -> Section:
    """Confusions and the worst images of B."""
    return Section(
        "mistakes", "Mistakes", render("mistakes.html", runs=[_mistakes(run, figures) for run in runs])
    )


def _mistakes(run: Analysis, figures: Figures) -> dict[str, object]:
    found, classes = run.numbers["mistakes"], run.numbers["classes"]
    pairs = [(classes[a], classes[b], n) for a, b, n in found["pairs"]]
    confusion = worst = None
    if found["confusion"] is not None:
        most = ", ".join(f"{a} called {b} {n} times" for a, b, n in pairs[:3]) or "none"
        alt = f"Confusion matrix of B of {run.name}. Most frequent: {most}."
        confusion = figures.draw(mistakes_figure.confusion(run), alt)
    if found["worst"]:
        alt = f"Contact sheet of the {len(found['worst'])} test images with the highest loss of B of {run.name}."
        worst = figures.draw(mistakes_figure.contact_sheet(run), alt)
    rows = [
        [text(a), text(b), number(run, f"mistakes/pairs/{i}/2", "{:.0f}")]
        for i, (a, b, _) in enumerate(pairs)
    ]
    grid = Grid(["is", "called", "times"], rows, f"{run.name}: most frequent confusions")
    return {"run": run, "confusion": confusion, "worst": worst, "grid": grid}


def cost(runs: Runs, figures: Figures) -> Section:
    """Parameters, memory and operations for one image."""
    headings = ["run", "binary weights", "real values", "Mbit", "Mbit in FP32", "smaller by"]
    rows = [
        [
            text(run.name),
            number(run, "cost/total/binary_params", "{:,.0f}"),
            number(run, "cost/total/real_params", "{:,.0f}"),
            number(run, "cost/mbit", "{:.3f}"),
            number(run, "cost/float_mbit", "{:.3f}"),
            number(run, "cost/ratio", "{:.1f}", unit="×"),
            *(number(run, f"cost/total/{what}", "{:,.2f}", 1e-6) for what in _OPERATIONS),
        ]
        for run in runs
    ]
    html = render(
        "cost.html",
        grid=Grid([*headings, "M BOPs", "M MACs", "M element-wise"], rows, "Inference of one image"),
        runs=[(run, _by_kind(run)) for run in runs],
    )
    return Section("cost", "Cost", html)


_OPERATIONS = ("bops", "macs", "elementwise")


def _by_kind(run: Analysis) -> Grid:
    kinds = run.numbers["cost"]["by_kind"]
    return Grid(
        ["kind", "binary weights", "real values", "kbit", "k BOPs", "k MACs", "k element-wise"],
        [[text(kind), *_amounts(run, f"cost/by_kind/{kind}")] for kind in kinds],
        f"{run.name}: by kind of layer",
        [text("total"), *_amounts(run, "cost/total")],
    )


def _amounts(run: Analysis, path: str) -> list[Cell]:
    plain = [number(run, f"{path}/{what}", "{:,.0f}") for what in ("binary_params", "real_params")]
    return plain + [number(run, f"{path}/{what}", "{:,.1f}", 1e-3) for what in ("n_bits", *_OPERATIONS)]


ALL = (accuracy, training, reconstruction, representations, feature_maps, weights, mistakes, cost)
