"""`latentbit compare`."""

from pathlib import Path
from typing import Annotated

import typer

from latentbit.cli import TrustCode


def compare(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Values of the recipe to change.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help='Methods, "+latent" behind one adds the latent loss; "all" is every one, both ways.'
        ),
    ] = "all",
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help='Compare changes of the recipe instead of methods: "NAME: KEY=VALUE ...". Repeat it.'
        ),
    ] = None,
    recipe: Annotated[str, typer.Option(help="Recipe that all of them are trained by.")] = "",
    seeds: Annotated[int, typer.Option(help="Runs per method, with seeds 0, 1, ...", min=1)] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="6 epochs on the embedded digits, no download.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Trainings side by side, one thread each.", min=1)] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Where to keep the runs; runs/compare-<recipe> by default.")
    ] = None,
    trust_code: TrustCode = False,
) -> None:
    """Train methods by one recipe and put them side by side: accuracy, time of a step, what inference keeps.

    \b
    latentbit compare --quick
    latentbit compare --quick --methods sign,sign+latent,irnet,irnet+latent --seeds 3
    latentbit compare --methods sign,sign+latent,bireal --recipe cifar10_resnet18_compact_quick epochs=5
    latentbit compare --quick --methods sign,bireal --seeds 4 --jobs 2
    latentbit compare --recipe cifar10_16px --seeds 3 --variant "plain:" --variant "flip: flip=true"

    With two seeds or more, differences are paired over seeds and have 95 % intervals: of NAME+latent to NAME, of the
    others to the first.

    The same command continues a comparison that was stopped, and adds seeds and methods to a finished one.
    """
    from rich.console import Console

    from latentbit.atomic import atomic_write
    from latentbit.comparison import compare as comparing
    from latentbit.comparison import standings

    if quick == bool(recipe):
        raise typer.BadParameter("give a recipe with --recipe or take --quick, one of the two")
    if variant and methods != "all":
        raise typer.BadParameter("give --methods or --variant, one of the two")
    name, changes = comparing.QUICK if quick else (recipe, [])
    changes = [*changes, *(overrides or [])]
    folder = out or Path("runs") / f"compare-{Path(name).stem}"
    chosen: list[comparing.Contender | comparing.Variant]
    chosen = [*comparing.variants(variant)] if variant else [*comparing.contenders(methods)]
    try:
        rows = comparing.compare(chosen, name, changes, seeds=seeds, out=folder, jobs=jobs, quiet=False)
    except comparing.Stopped as stopped:
        typer.echo(str(stopped), err=True)
        raise typer.Exit(130) from None
    title = " ".join([f"latentbit compare: {name}", *changes, f"seeds={seeds}"])
    Console().print(standings.table(rows, title))
    shown = standings.what_is_shown(rows)
    typer.echo(shown)
    if standings.has_differences(rows):
        Console().print(standings.differences(rows))
    for note in standings.notes(rows):
        typer.echo(note)
    times = f"Step times relative to {rows[0].contender}, {1000 * rows[0].step_seconds:.0f} ms."
    note = f"{shown} {times} All rows by one recipe."
    with atomic_write(folder / "table.md") as file:
        file.write(standings.markdown(rows, title, note).encode())
    standings.plot(rows, folder / "accuracy.png", title)
    typer.echo(f"table.md, accuracy.png, rows.json and all runs in {folder}")
    if all(row.problem for row in rows):
        raise typer.Exit(1)
