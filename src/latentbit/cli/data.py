"""`latentbit data list | get | check | shard | show`: what there is to train on, and how it looks."""

from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="List, download, check, shard and show data sets."
)

Name = Annotated[str, typer.Argument(help="cifar10 or cifar100", metavar="NAME")]


@group.command("list")
def list_all(
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
            metavar="NAME|DIR", help="A data set, or a folder of images or shards. Default: the cache."
        ),
    ] = None,
) -> None:
    """Verify the checksums of the cache or of shards, decode every image of a folder, and list all problems.

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


@group.command()
def shard(
    source: Annotated[
        Path,
        typer.Argument(metavar="SRC", help="A folder of images: train/ and val/, or one folder per class."),
    ],
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="The folder that the shards go to.")],
    megabytes: Annotated[int, typer.Option("--megabytes", min=1, help="Size of a shard.")] = 256,
) -> None:
    """Pack a folder of images into tar files in the WebDataset layout, with an index and checksums.

    Stopped, it goes on where it was when the same command is typed again. Images are copied as they are.

    [bold]Examples[/bold]

    latentbit data shard /data/imagenet /data/imagenet_shards

    latentbit train imagenet_resnet18 dataset=shards root=/data/imagenet_shards
    """
    from latentbit.data import shard_writing

    made = shard_writing.write(source, dest, megabytes * 1_000_000)
    kept = f", {made.n_kept} of them from before" if made.n_kept else ""
    typer.echo(
        f"{made.n_images:,} images in {made.n_shards} shards{kept}, {made.n_bytes / 1e9:.3g} GB, in {dest}"
    )
    typer.echo(f"to train on them: dataset=shards root={dest}")


@group.command()
def show(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe by name, or a .toml file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Values that replace the recipe's.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture to write.")] = Path("sheet.png"),
    n_images: Annotated[int, typer.Option("--images", min=1, max=100, help="Rows of the sheet.")] = 8,
) -> None:
    """Draw training images beside what the network sees of them: in a test, and in four epochs of training.

    [bold]Examples[/bold]

    latentbit data show cifar10_resnet18_compact

    latentbit data show imagenet_resnet18 root=/data/imagenet crop=random_resized -o sheet.png
    """
    import dataclasses

    from latentbit import data, recipes
    from latentbit.data import contact_sheet

    chosen = recipes.load(recipe, overrides or [])
    here = dataclasses.replace(chosen.data, workers=0)  # a handful of images
    sheet = contact_sheet.draw(data.open(here), n_images, chosen.run.seed)
    contact_sheet.write(sheet, output)
    typer.echo(
        f"{output}: {n_images} training images of {chosen.data.dataset}, as stored and as the network sees them"
    )
