"""`latentbit methods list | show`: the published ways to binarize that come with the package, and their options."""

from typing import Annotated

import typer

group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="List and show methods.")


@group.command("list")
def show_all(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every method in a line, and what inference keeps of it beside signs and scales.

    [bold]Examples[/bold]

    latentbit methods list

    latentbit train digits_resnet18_compact method=irnet
    """
    import json

    from latentbit import methods

    if as_json:
        found = [
            {
                "name": name,
                "what": methods.manual(name).splitlines()[0],
                "kept": _kept(name),
                "options": methods.create(name).options(),
            }
            for name in methods.names()
        ]
        typer.echo(json.dumps(found, indent=2))
        return
    for name in methods.names():
        typer.secho(name, bold=True)
        typer.echo(f"    {methods.manual(name).splitlines()[0]}\n    beside signs and scales: {_kept(name)}")


@group.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a method, or module:Class of your own.")],
) -> None:
    """Print what a method does: formulas, paper, how sure we are of them, what is left out, and its options.

    [bold]Examples[/bold]

    latentbit methods show irnet

    latentbit train digits_resnet18_compact method=irnet method.t_min=0.1
    """
    from latentbit import methods

    typer.echo(f"{methods.manual(name)}\n\nKept at inference beside signs and scales: {_kept(name)}")
    typer.echo("\n" + "\n".join(_options(name)))


def _options(name: str) -> list[str]:
    """Name, allowed values, default and meaning of each option."""
    from latentbit import fields, methods

    cls = methods.find(name)
    hints, docs, defaults = fields.hints(cls), fields.docs(cls), methods.create(name).options()
    if not hints:
        return ["Options: none"]
    lines = ["Options, set as method.NAME=VALUE or in the [method] table of a recipe:"]
    for key, hint in hints.items():
        lines.append(f"  {key} = {defaults[key]}    {fields.words(hint)}")
        lines += [f"      {line}" for line in docs[key].splitlines()]
    return lines


def _kept(name: str) -> str:
    from torch import nn

    from latentbit import methods
    from latentbit.layers import BinaryConv2d
    from latentbit.methods.parts.binarizer import NotDeployable

    layer = BinaryConv2d.from_float(nn.Conv2d(8, 8, 3), methods.create(name))
    try:
        return layer.binarizer.deploy(layer.weight.detach()).extras()
    except NotDeployable as error:
        return f"more than a packed file can hold; {error}"
