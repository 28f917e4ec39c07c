"""`latentbit data list | get | check`: what there is to train on, and the cache of downloaded sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latentbit.data.cifar import Cifar

group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="List, download and check data sets.")

Name = Annotated[str, typer.Argument(help="cifar10 or cifar100", metavar="NAME")]


@group.command("list")
def show() -> None:
    """Show every data set, its size, and whether it is here."""
    from rich.console import Console
    from rich.table import Table

    from latentbit.data import cifar, store

    table = Table(box=None, pad_edge=False)
    for title in ("name", "classes", "train", "test", "image", "where"):
        table.add_column(title)
    table.add_row("digits", "10", "1437", "360", "1x8x8", "embedded")
    for kind in (cifar.CIFAR10, cifar.CIFAR100):
        here = all(kind.path(split).exists() for split in kind.n_images)
        where = str(kind.folder) if here else f"latentbit data get {kind.name}"
        counts = [str(kind.n_images[split]) for split in ("train", "test")]
        table.add_row(kind.name, str(len(kind.classes)), *counts, "3x32x32", where)
    table.add_row("image_folder", "folders", "", "", "3x224x224", "root=DIR, with train/ and val/")
    Console().print(table)
    typer.echo(f"cache: {store.cache()} (LATENTBIT_CACHE moves it)")


@group.command()
def get(
    name: Name,
    archive: Annotated[
        Path | None, typer.Option("--from", help="An archive or unpacked folder you already have.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Download even if the cache is sound.")] = False,
) -> None:
    """Download a data set into the cache, trying its sources in turn; a broken download is resumed.

    [bold]Examples[/bold]

    latentbit data get cifar10

    latentbit data get cifar10 --from cifar-10-binary.tar.gz
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    from latentbit.data import cifar

    kind = _kind(name)
    if archive is None and not force and not cifar.check(kind):
        typer.echo(f"{name} is in {kind.folder}, whole and checked")
        return
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, visible=False)

        def report(file: str, done: int, total: int) -> None:
            progress.update(task, description=file, completed=done, total=total or None, visible=True)

        def say(line: str) -> None:
            progress.console.print(line, highlight=False, markup=False, soft_wrap=True)

        cifar.get(kind, report, say, archive)
    typer.echo(f"{name} is in {kind.folder}, whole and checked")


@group.command()
def check(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|DIR", help="A data set or an image folder; the whole cache without it."),
    ] = None,
) -> None:
    """Verify the checksums of what is in the cache, or decode every image of a folder, and say what is wrong.

    [bold]Examples[/bold]

    latentbit data check

    latentbit data check cifar10

    latentbit data check /data/imagenet
    """
    from latentbit.data import cifar

    if name and name not in (cifar.CIFAR10.name, cifar.CIFAR100.name) and Path(name).is_dir():
        _check_folder(Path(name))
        return
    kinds = [_kind(name)] if name else [cifar.CIFAR10, cifar.CIFAR100]
    sound = True
    for kind in kinds:
        if name is None and not any(kind.path(split).exists() for split in kind.n_images):
            typer.echo(f"{kind.name}: not downloaded")
            continue
        problems = cifar.check(kind)
        for problem in problems:
            typer.echo(f"{kind.name}: {problem}")
        if not problems:
            typer.echo(f"{kind.name}: sound, {sum(kind.n_images.values())} images in {kind.folder}")
        sound = sound and not problems
    if not sound:
        raise typer.Exit(1)


def _check_folder(root: Path) -> None:
    import os

    from latentbit.data import folders, image_folder

    train, test, classes = folders.find(root)
    problems = [line for lines in image_folder.unreadable(root, os.cpu_count() or 1) for line in lines]
    for line in problems:
        typer.echo(line)
    verdict = f"{len(problems)} cannot be decoded" if problems else "all can be decoded"
    typer.echo(f"{root}: {len(classes)} classes, {len(train)} train and {len(test)} test images, {verdict}")
    if problems:
        raise typer.Exit(1)


def _kind(name: str) -> "Cifar":
    from latentbit.data import DataError, cifar

    kinds = {"cifar10": cifar.CIFAR10, "cifar100": cifar.CIFAR100}
    if name == "digits":
        raise DataError("digits come with scikit-learn: there is nothing to download or check")
    if name not in kinds:
        raise DataError(f"no data set {name!r} to download; there are {', '.join(kinds)}")
    return kinds[name]
