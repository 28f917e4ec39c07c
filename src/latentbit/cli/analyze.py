"""`latentbit analyze`: what B and W of a run learned, as JSON and figures in its directory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from latentbit.analyze import Analysis


def analyze(
    runs: Annotated[list[Path], typer.Argument(help="Run directories of `latentbit train`.")],
    which: Annotated[str, typer.Option(help="best or last.")] = "best",
    samples: Annotated[
        int, typer.Option(help="Test images for features, t-SNE and reconstruction errors.", min=10)
    ] = 2000,
    layer: Annotated[str | None, typer.Option(help="Binary convolution whose maps are shown.")] = None,
    image: Annotated[int, typer.Option(help="Test image whose maps are shown.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Of the t-SNE layout.", min=0)] = 0,
    again: Annotated[bool, typer.Option("--again", help="Do not reuse a stored analysis.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers of all runs as JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Analyse runs: accuracies of B, W and W-dagger, reconstruction errors, t-SNE, maps, weights, mistakes, cost.

    Leaves RUN/analysis/analysis.json and figures as SVG and PNG beside it. Several runs are set side by side.

    [bold]Examples[/bold]

    latentbit analyze runs/digits_resnet18_compact

    latentbit analyze runs/*_baseline runs/*_instance runs/*_label_aware

    latentbit analyze runs/cifar10_resnet18_compact --layer stages.0.3.conv --image 7 --samples 500
    """
    from rich.console import Console

    from latentbit.analyze import analyze_once
    from latentbit.analyze.stages import Stages
    from latentbit.analyze.stored import FOLDER, dumps
    from latentbit.figures import draw_once

    found = []
    with Stages() as stages:
        for run in runs:
            analysis = analyze_once(
                run,
                again=again,
                stages=stages,
                which=which,
                samples=samples,
                layer=layer,
                image=image,
                seed=seed,
                device=device,
            )
            with stages.stage(f"drawing {analysis.name}"):
                draw_once(analysis, run / FOLDER)
            found.append(analysis)
    if as_json:
        typer.echo(dumps({str(run): one.numbers for run, one in zip(runs, found, strict=True)}), nl=False)
        return
    console = Console(highlight=False)
    for table in (_accuracy_table(found), _separation_table(found), _latent_table(found)):
        if table.row_count:
            console.print(table)
    for run in runs:
        console.print(f"{run / FOLDER}: analysis.json and figures", markup=False, soft_wrap=True)
    console.print(f"all of it on one page: latentbit report {' '.join(map(str, runs))}", soft_wrap=True)


def _accuracy_table(found: "list[Analysis]") -> "Table":
    from rich.table import Table

    table = Table(title="test accuracy, %", title_justify="left")
    table.add_column("run")
    for heading in ("B", "W, stale", "W†"):
        table.add_column(heading, justify="right")
    for one in found:
        scores = {key: f"{100 * score['accuracy']:.2f}" for key, score in one.numbers["accuracy"].items()}
        table.add_row(one.name, *(scores.get(key, "") for key in ("B", "W", "W_dagger")))
    return table


def _separation_table(found: "list[Analysis]") -> "Table":
    from rich.table import Table

    table = Table(title="penultimate features: how well classes are apart", title_justify="left")
    table.add_column("run")
    table.add_column("view")
    table.add_column("silhouette", justify="right")
    table.add_column("intra / inter distance", justify="right")
    for one in found:
        for key, numbers in one.numbers["representations"]["views"].items():
            values = (numbers["silhouette"], numbers["distance_ratio"])
            shown = ("" if value is None else f"{value:.3f}" for value in values)
            table.add_row(one.name, key.replace("_dagger", "†"), *shown)
    return table


def _latent_table(found: "list[Analysis]") -> "Table":
    """Reconstruction errors, a column per run."""
    from rich.table import Table

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
