"""`latentbit info`: versions, what this CPU offers, which kernels the engine chose; or a run in a few lines."""

import platform
from pathlib import Path
from typing import Annotated

import typer


def info(
    run: Annotated[
        Path | None, typer.Argument(help="Run directory to describe, instead of this machine.")
    ] = None,
) -> None:
    """Show the versions in use, the instruction sets of this CPU, and the kernels the engine will run.

    [bold]Examples[/bold]

    latentbit info

    LATENTBIT_ISA=scalar latentbit info

    latentbit info runs/cifar10_resnet18_compact
    """
    if run is not None:
        from latentbit import runs
        from latentbit.runs.summary import summary

        for line in summary(runs.open(run)):
            typer.echo(line)
        return
    import os
    from importlib.metadata import PackageNotFoundError, version

    import numpy

    from latentbit import __version__, _native, engine

    try:
        torch = f"torch {version('torch')}"
    except PackageNotFoundError:
        torch = "no torch (pip install 'latentbit[train]' to train)"
    typer.echo(f"latentbit  {__version__}")
    typer.echo(f"python     {platform.python_version()}, numpy {numpy.__version__}, {torch}")
    typer.echo(
        f"cpu        {platform.machine()}: {', '.join(_native.cpu_features()) or 'portable code only'}"
    )
    others = [name for name in engine.available() if name != engine.chosen_isa()]
    forced = " (forced by LATENTBIT_ISA)" if os.environ.get(engine.ISA_VARIABLE) else ""
    also = f"; also available: {', '.join(others)}" if others else ""
    typer.echo(f"engine     {engine.chosen_isa()}{forced}{also}")
