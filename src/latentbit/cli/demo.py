"""`latentbit demo`."""

import typer


def demo(
    epochs: int | None = typer.Option(None, min=1, help="Epochs of each run instead of the recipes' own."),
) -> None:
    """Train a small binary network on the embedded digits, with and without its latent weights at work.

    Needs no download and takes about a minute on two cores. Leaves two run directories.

    [bold]Examples[/bold]

    latentbit demo

    latentbit demo --epochs 3
    """
    from latentbit.comparison.demo import demo

    if not demo(epochs):
        raise typer.Exit(130)
