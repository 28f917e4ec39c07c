"""`latentbit train`."""

import os
from pathlib import Path

import typer


def train(
    recipe: str = typer.Argument("", help="Name of a recipe (`latentbit recipes list`) or a .toml file."),
    overrides: list[str] = typer.Argument(None, metavar="[KEY=VALUE]...", help="Values to change."),
    out: Path | None = typer.Option(None, help="Run directory; runs/<recipe> by default, numbered if taken."),
    resume: Path | None = typer.Option(None, help="Continue this run directory exactly where it stopped."),
    accept_changes: bool = typer.Option(
        False, "--accept-changes", help="With --resume: go on although recipe.toml was edited."
    ),
    device: str = typer.Option("", help="auto, cpu, cuda or mps; the same as device=..."),
) -> None:
    """Train a recipe and leave a run directory: recipe, environment, metrics, checkpoints.

    [bold]Examples[/bold]

    latentbit train digits_resnet18_compact_baseline

    latentbit train cifar10_resnet18_compact epochs=2 seed=1

    latentbit train --resume runs/cifar10_resnet18_compact

    torchrun --nproc-per-node 4 -m latentbit train imagenet_resnet18 root=/data/imagenet
    """
    from latentbit import recipes, runs
    from latentbit.training.train import train

    if (resume is None) == (recipe == ""):
        raise typer.BadParameter("give a recipe to start or --resume RUN to continue, one of the two")
    if resume is None:
        changes = [*(overrides or []), *([f"device={device}"] if device else [])]
        chosen = recipes.load(recipe, changes)
    elif overrides or out or device or recipe:
        raise typer.BadParameter(
            "a resumed run keeps its recipe and place: leave out everything but --resume"
        )
    else:
        chosen = runs.open(resume).recipe()
    run, scores = train(chosen, out=out, resume=resume, accept_changes=accept_changes)
    if scores is not None and int(os.environ.get("RANK", "0")) == 0:
        named = scores.named()
        typer.echo(f"{run.epoch_in_words('last')}; on {scores.binary.total} test images:")
        for number, score in named.items():
            typer.echo(f"{number.name:<3} {score}" + (f"   {number.short}" if len(named) > 1 else ""))
        typer.echo(f"run in {run.path}")
