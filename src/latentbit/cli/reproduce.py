"""`latentbit reproduce`: a table of the paper with our numbers beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from latentbit.paper.reproduce import Reproduced


def reproduce(
    table: Annotated[
        str, typer.Argument(help="table1, table2, table3, lambda, projection, cifar10, table8 or complexity.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Values to change in every recipe.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="8 epochs on CIFAR-10, networks that 2 cores can train.")
    ] = False,
    digits: Annotated[
        bool, typer.Option("--digits", help="15 epochs on the embedded digits: minutes, no download.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of every run, instead of the paper's.", min=1)
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each recipe; the mean is shown.", min=1)] = 1,
    jobs: Annotated[int, typer.Option(help="Trainings side by side, one thread each.", min=1)] = 1,
    root: Annotated[
        Path | None, typer.Option(help="Folder of ImageNet, with train/ and val/: trains what table8 lacks.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where runs are looked for and written.")] = Path("runs"),
    out: Annotated[
        Path | None, typer.Option(help="Folder of the Markdown and JSON; the folder of the runs by default.")
    ] = None,
) -> None:
    """Run what a table of the paper needs and print ours, the paper's and the difference.

    Finished runs of the same recipe are reused, interrupted ones continued: stop it and start it at will.

    [bold]Examples[/bold]

    latentbit reproduce complexity

    latentbit reproduce table1 --digits

    latentbit reproduce table3 --quick

    latentbit reproduce projection --epochs 30 --seeds 3 --jobs 2

    latentbit reproduce table2 --quick --epochs 15 image_size=16 --jobs 2

    latentbit reproduce table8 --runs runs
    """
    import json

    from rich.console import Console

    from latentbit.atomic import atomic_write
    from latentbit.paper.reproduce import OURS, Scale
    from latentbit.paper.reproduce import reproduce as reproduce_table
    from latentbit.paper.side_by_side import markdown

    scale: Scale = "digits" if digits else "quick" if quick else "full"
    found = reproduce_table(
        table, overrides or (), scale=scale, epochs=epochs, seeds=seeds, folder=runs, jobs=jobs, root=root
    )
    console = Console(highlight=False)
    console.print(_table(found))
    if any(line.runs for line in found.lines):
        console.print(OURS)
    if found.scaled_down:
        console.print(f"scaled down: {found.scaled_down}; expect other numbers than the paper's")
    for note in sorted({line.note for line in found.lines if line.note}):
        count = sum(line.note == note for line in found.lines)
        console.print(f"{count} of {len(found.lines)} numbers missing: {note}", markup=False, soft_wrap=True)
    name = found.file_name
    folder = out or runs
    texts = {
        ".md": markdown(found),
        ".json": json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n",
    }
    for suffix, text in texts.items():
        with atomic_write(folder / f"{name}{suffix}") as file:
            file.write(text.encode())
        console.print(f"{folder / name}{suffix}", markup=False, soft_wrap=True)
    if found.stopped:
        console.print("stopped: the same command continues from here")
        raise typer.Exit(130)


def _table(found: "Reproduced") -> "Table":
    from rich.table import Table

    from latentbit.paper.side_by_side import cells, pivot

    rows, columns, at = pivot(found.lines)
    table = Table(title=found.title, title_justify="left")
    for heading in ("", "", "ours", "paper", "difference"):
        table.add_column(heading, justify="right" if heading else "left")
    for column in columns:
        for row in rows:
            if (row, column) in at:
                table.add_row(column, row, *cells(at[row, column]))
        if len(rows) > 1:
            table.add_section()
    return table
