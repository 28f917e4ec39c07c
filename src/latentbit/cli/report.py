"""`latentbit report`: one HTML page about one or several runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from latentbit.cli import TrustCode


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories of `latentbit train`.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; report.html in the first run by default.")
    ] = None,
    which: Annotated[
        str | None,
        typer.Option(
            help="Weights to use: best or last. Default: best if validation images chose it, else last."
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Test images for features and reconstruction errors. Default: as stored, else 2000.", min=10
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    trust_code: TrustCode = False,
) -> None:
    """Write one self-contained report.html: curves, both views, features, weights, mistakes, cost, recipe.

    Stored analyses are reused. Missing ones, and those of other weights, are computed first. Several runs share
    the charts.

    [bold]Examples[/bold]

    latentbit report runs/digits_resnet18_compact

    latentbit report runs/*_baseline runs/*_instance runs/*_label_aware --out strategies.html
    """
    from latentbit.report import report_runs
    from latentbit.runs import usable

    runs, skipped = usable(runs, which)
    for note in skipped:
        typer.echo(note, err=True)

    asked: dict[str, Any] = {} if samples is None else {"samples": samples}
    target = out or runs[0] / "report.html"
    report_runs(runs, target, which=which, device=device, **asked)
    typer.echo(f"{target} ({target.stat().st_size / 1e6:.1f} MB): open it in a browser")
