"""`latentbit recipes list | show | copy`: the recipes that come with the package."""

from pathlib import Path
from typing import Annotated

import typer

from latentbit.cli import recipe_names

group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="List, show and copy recipes.")

Name = Annotated[
    str,
    typer.Argument(help="A recipe's name, or the path of a .toml file.", autocompletion=recipe_names),
]
Overrides = Annotated[list[str] | None, typer.Argument(help="Values to change, as key=value.")]
Full = Annotated[bool, typer.Option("--full", help="Every value, with what the recipe extends filled in.")]


@group.command("list")
def show_all(
    pattern: Annotated[str, typer.Argument(help="Only recipes whose name contains this.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every recipe: what it trains, the accuracy the paper prints, and ours.

    [bold]Examples[/bold]

    latentbit recipes list

    latentbit recipes list imagenet
    """
    import json

    from latentbit import recipes
    from latentbit.errors import nearest
    from latentbit.recipes import RecipeError

    found = {name: recipes.header(name) for name in recipes.names() if pattern in name}
    if not found:
        hint = nearest(pattern, recipes.names()) or ";"
        raise RecipeError(
            repr(pattern), [f"no recipe has that in its name{hint} `latentbit recipes list` shows all"]
        )
    if as_json:
        typer.echo(json.dumps([{"name": name, **head} for name, head in found.items()], indent=2))
        return
    for name, head in found.items():
        typer.secho(name, bold=True)
        typer.echo(f"    {head['what']}\n    paper: {head['paper']}; here: {head['here']}")


@group.command()
def show(name: Name, overrides: Overrides = None, full: Full = False) -> None:
    """Print a recipe's file, or with --full or overrides every value a run of it would have.

    [bold]Examples[/bold]

    latentbit recipes show cifar10_resnet18_compact

    latentbit recipes show cifar10_resnet18_compact_quick --full

    latentbit recipes show cifar10_resnet20 epochs=10 lr=1e-3
    """
    typer.echo(_text(name, overrides or [], full), nl=False)


@group.command()
def copy(
    name: Name,
    dest: Annotated[Path, typer.Argument(help="A file or folder; here without it.")] = Path("."),
    full: Full = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Copy a recipe to a file of your own, to be changed and then trained by its path.

    [bold]Examples[/bold]

    latentbit recipes copy cifar10_resnet20 mine.toml

    latentbit train mine.toml
    """
    from latentbit.recipes import RecipeError

    text = _text(name, [], full)
    path = dest / f"{Path(name).stem}.toml" if dest.is_dir() else dest
    if path.suffix != ".toml":
        raise RecipeError(repr(name), [f"{path} does not end in .toml, and only such files are recipes"])
    if path.exists() and not force:
        raise RecipeError(repr(name), [f"{path} is already there: choose another name, or --force"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    typer.echo(f"{path}: train it with  latentbit train {path}")


def _text(name: str, overrides: list[str], full: bool) -> str:
    """The file as it is; or every value, under the file's own header."""
    from latentbit import recipes

    loaded = recipes.load(name, overrides)
    if not full and not overrides:
        return recipes.path_of(name).read_text(encoding="utf-8")
    command = " ".join(["latentbit train", name, *overrides])
    lines = [command, *(f"{key}: {text}" for key, text in recipes.header(name).items() if not overrides)]
    return recipes.dumps(loaded, "\n".join(lines))
