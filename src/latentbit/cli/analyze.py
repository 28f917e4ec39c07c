"""`latentbit analyze`: what B and W of a run learned, as JSON and figures in its directory."""

from pathlib import Path
from typing import Annotated

import typer

from latentbit.cli import TrustCode


def analyze(
    runs: Annotated[list[Path], typer.Argument(help="Run directories of `latentbit train`.")],
    which: Annotated[
        str | None,
        typer.Option(
            help="Weights to use: best or last. Default: best if validation images chose it, else last."
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Test images for features, t-SNE and reconstruction errors.", min=10)
    ] = 2000,
    layer: Annotated[str | None, typer.Option(help="Binary convolution whose feature maps to show.")] = None,
    image: Annotated[int, typer.Option(help="Index of the test image for the feature maps.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the t-SNE layout.", min=0)] = 0,
    again: Annotated[bool, typer.Option("--again", help="Recompute even if an analysis is stored.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers of all runs as JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    trust_code: TrustCode = False,
) -> None:
    """Analyse runs: accuracies of B, W and W-dagger, reconstruction errors, t-SNE, maps, weights, mistakes, cost.

    Writes RUN/analysis/analysis.json, and figures as SVG and PNG next to it. Several runs are shown side by side.

    [bold]Examples[/bold]

    latentbit analyze runs/digits_resnet18_compact

    latentbit analyze runs/*_baseline runs/*_instance runs/*_label_aware

    latentbit analyze runs/cifar10_resnet18_compact --layer stages.0.3.conv --image 7 --samples 500
    """
    from rich.console import Console

    from latentbit.analyze.stored import FOLDER, dumps
    from latentbit.analyze.tables import tables
    from latentbit.figures import analyze_and_draw
    from latentbit.runs import usable

    runs, skipped = usable(runs, which)
    for note in skipped:
        typer.echo(note, err=True)

    found = analyze_and_draw(
        runs,
        again=again,
        which=which,
        samples=samples,
        layer=layer,
        image=image,
        seed=seed,
        device=device,
    )
    if as_json:
        typer.echo(dumps({str(run): one.numbers for run, one in zip(runs, found, strict=True)}), nl=False)
        return
    console = Console(highlight=False)
    for table in tables(found):
        console.print(table)
    for run in runs:
        console.print(f"{run / FOLDER}: analysis.json and figures", markup=False, soft_wrap=True)
    console.print(
        f"to see everything on one page: latentbit report {' '.join(map(str, runs))}", soft_wrap=True
    )
