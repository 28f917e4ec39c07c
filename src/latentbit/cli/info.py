"""`latentbit info`: versions and what this CPU offers."""

import platform

import typer


def info() -> None:
    """Show the versions in use and the instruction sets that this CPU and its OS offer."""
    import numpy
    import torch

    from latentbit import __version__, _native

    typer.echo(f"latentbit  {__version__}")
    typer.echo(
        f"python     {platform.python_version()}, numpy {numpy.__version__}, torch {torch.__version__}"
    )
    typer.echo(
        f"cpu        {platform.machine()}: {', '.join(_native.cpu_features()) or 'portable code only'}"
    )
