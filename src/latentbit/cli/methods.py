"""`latentbit methods list | show`: the published ways to binarize that come with the package."""

from typing import Annotated

import typer

group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="List and show methods.")


@group.command("list")
def show_all() -> None:
    """Show every method in a line, and what inference keeps of it beside signs and scales.

    [bold]Examples[/bold]

    latentbit methods list

    latentbit train digits_resnet18_compact method=irnet
    """
    from latentbit import methods

    for name in methods.names():
        typer.secho(name, bold=True)
        typer.echo(f"    {methods.manual(name).splitlines()[0]}\n    beside signs and scales: {_kept(name)}")


@group.command()
def show(name: Annotated[str, typer.Argument(help="Name of a method.")]) -> None:
    """Print what a method does: its formulas, its paper, how sure we are of them, what is left out.

    [bold]Examples[/bold]

    latentbit methods show reactnet
    """
    from latentbit import methods

    typer.echo(f"{methods.manual(name)}\n\nKept at inference beside signs and scales: {_kept(name)}")


def _kept(name: str) -> str:
    from torch import nn

    from latentbit import methods
    from latentbit.layers import BinaryConv2d
    from latentbit.methods.parts.binarizer import NotDeployable

    layer = BinaryConv2d.from_float(nn.Conv2d(8, 8, 3), methods.find(name))
    try:
        return layer.binarizer.deploy(layer.weight.detach()).extras()
    except NotDeployable as error:
        return f"more than a packed file can hold; {error}"
