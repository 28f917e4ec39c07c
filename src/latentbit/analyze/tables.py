"""Analyses side by side, as tables for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from latentbit.analyze.stored import Analysis
from latentbit.views.numbers import BY_KEY, NUMBERS

Runs = Sequence[Analysis]


def tables(found: Runs) -> list[Table]:
    """Accuracies, how far classes are apart, reconstruction errors; a table without rows is left out."""
    made = (_accuracy_table(found), _separation_table(found), _reconstruction_table(found))
    return [table for table in made if table.row_count]


def _accuracy_table(found: Runs) -> Table:
    images = sorted({score["total"] for one in found for score in one.numbers["accuracy"].values()})
    counts = " or ".join(f"{n:,}" for n in images)
    table = Table(title=f"accuracy on the {counts} test images, %", title_justify="left")
    table.add_column("run")
    table.add_column("epoch")
    for number in NUMBERS:
        table.add_column(number.name, justify="right")
    for one in found:
        scores = {key: f"{100 * score['accuracy']:.2f}" for key, score in one.numbers["accuracy"].items()}
        epoch = one.numbers.get("epoch_in_words", str(one.numbers["epoch"])).removeprefix("epoch ")
        table.add_row(one.name, epoch, *(scores.get(number.key, "") for number in NUMBERS))
    return table


def _separation_table(found: Runs) -> Table:
    table = Table(title="penultimate features: how well classes are apart", title_justify="left")
    table.add_column("run")
    table.add_column("view")
    table.add_column("silhouette", justify="right")
    table.add_column("intra / inter distance", justify="right")
    for one in found:
        for key, numbers in one.numbers["representations"]["views"].items():
            values = (numbers["silhouette"], numbers["distance_ratio"])
            shown = ("" if value is None else f"{value:.3f}" for value in values)
            table.add_row(one.name, BY_KEY[key].name, *shown)
    return table


def _reconstruction_table(found: Runs) -> Table:
    """Reconstruction errors, a column per run."""
    latent = [one for one in found if "reconstruction" in one.numbers]
    table = Table(title="feature reconstruction error by binary layer", title_justify="left")
    table.add_column("layer")
    for one in latent:
        table.add_column(one.name, justify="right")
    columns = [list(one.numbers["reconstruction"]["layers"].items()) for one in latent]
    for row in range(max((len(column) for column in columns), default=0)):
        names = {column[row][0] for column in columns if row < len(column)}
        cells = [f"{column[row][1]:.5f}" if row < len(column) else "" for column in columns]
        table.add_row(" / ".join(sorted(names)), *cells)
    if latent:
        table.add_section()
        table.add_row("average", *(f"{one.numbers['reconstruction']['average']:.5f}" for one in latent))
    return table
