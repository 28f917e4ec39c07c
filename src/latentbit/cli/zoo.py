"""`latentbit zoo`: the trained networks that come with the package."""

from pathlib import Path

import typer

group = typer.Typer(no_args_is_help=True, help="Trained networks that come with the package.")


@group.command("list")
def list_(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """Name every network, with its accuracy and size.

    [bold]Examples[/bold]

    latentbit zoo list

    latentbit run zoo:digits photo_of_a_digit.png
    """
    import json

    from latentbit import zoo

    cards = [zoo.card(name) for name in zoo.names()]
    if as_json:
        typer.echo(json.dumps([card.as_dict() for card in cards], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in ("name", "what", "accuracy", "seeds", "bytes"):
        # A name is there to be typed: whatever the width, it is the description that wraps.
        left = heading in ("name", "what")
        table.add_column(heading, justify="left" if left else "right", no_wrap=heading != "what")
    for card in cards:
        table.add_row(
            f"zoo:{card.name}",
            card.summary,
            f"{card.score.accuracy:.2%}",
            str(len(card.seeds)),
            f"{card.file_bytes:,}",
        )
    Console().print(table)


@group.command()
def show(
    name: str = typer.Argument(..., help="Name of a network; `latentbit zoo list` has them."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the card of a network: data, training, accuracy, confusion matrix, size, speed, licence.

    [bold]Examples[/bold]

    latentbit zoo show digits
    """
    import json

    from latentbit import zoo

    card = zoo.card(name.removeprefix(zoo.PREFIX))
    typer.echo(json.dumps(card.as_dict(), indent=2) if as_json else card)


@group.command()
def get(
    name: str = typer.Argument(..., help="Name of a network; `latentbit zoo list` has them."),
    out: Path | None = typer.Option(None, "--out", "-o", help="File to write; NAME.lbit by default."),
    force: bool = typer.Option(False, help="Replace a file that is there."),
) -> None:
    """Copy the packed file of a network.

    [bold]Examples[/bold]

    latentbit zoo get digits

    latentbit zoo get digits -o firmware/digits.lbit
    """
    from latentbit import zoo
    from latentbit.atomic import atomic_write

    name = name.removeprefix(zoo.PREFIX)
    content = zoo.file(name).read_bytes()
    out = out or Path(f"{name}.lbit")
    if out.exists() and not force:
        raise zoo.ZooError(f"{out} is there already: remove it, choose another --out, or add --force")
    with atomic_write(out) as file:
        file.write(content)
    typer.echo(f"written  {out} ({len(content):,} bytes)")
