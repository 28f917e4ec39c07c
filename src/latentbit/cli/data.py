"""`latentbit data list | get | check`: what there is to train on, and the cache of downloaded sets."""

from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="List, download and check data sets.")

Name = Annotated[str, typer.Argument(help="cifar10 or cifar100", metavar="NAME")]


@group.command("list")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every data set, its size, and whether it is downloaded.

    [bold]Examples[/bold]

    latentbit data list

    latentbit data list --json
    """
    import json

    from rich.console import Console

    from latentbit.data import catalogue, store

    if as_json:
        typer.echo(json.dumps({"cache": str(store.cache()), "sets": catalogue.facts()}, indent=2))
        return
    Console().print(catalogue.listing())
    typer.echo(f"cache: {store.cache()} (LATENTBIT_CACHE moves it)")


@group.command()
def get(
    name: Name,
    archive: Annotated[
        Path | None, typer.Option("--from", help="An archive or unpacked folder you already have.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Download again even if the cached files are OK.")
    ] = False,
) -> None:
    """Download a data set into the cache, trying each source in turn. Interrupted downloads are resumed.

    [bold]Examples[/bold]

    latentbit data get cifar10

    latentbit data get cifar10 --from cifar-10-binary.tar.gz
    """
    from latentbit.data import catalogue

    kind = catalogue.get(name, archive, force)
    typer.echo(f"{name} is in {kind.folder}, complete, checksums verified")


@group.command()
def check(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|DIR", help="A data set or an image folder. Default: everything in the cache."
        ),
    ] = None,
) -> None:
    """Verify the checksums of the cache, or decode every image of a folder, and list all problems.

    [bold]Examples[/bold]

    latentbit data check

    latentbit data check cifar10

    latentbit data check /data/imagenet
    """
    from latentbit.data import catalogue

    sound = True
    for finding in catalogue.check(name):
        typer.echo(finding.line)
        sound = sound and finding.sound
    if not sound:
        raise typer.Exit(1)
