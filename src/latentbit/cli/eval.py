"""`latentbit eval`."""

from pathlib import Path

import typer


def eval(
    run: Path = typer.Argument(..., help="Run directory of `latentbit train`."),
    which: str = typer.Option("best", help="best or last."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Print the accuracies of a run: B, W with stale statistics, W-dagger recalibrated.

    [bold]Examples[/bold]

    latentbit eval runs/cifar10_resnet18_compact

    latentbit eval runs/cifar10_resnet18_compact --which last --json
    """
    import json

    from latentbit import data
    from latentbit.runs.directory import RunDirectory
    from latentbit.training.build import deployed_model
    from latentbit.training.device import choose_device
    from latentbit.training.evaluate import scores

    if which not in ("best", "last"):
        raise typer.BadParameter(f"--which is best or last, not {which!r}")
    directory = RunDirectory.open(run)
    recipe = directory.recipe()
    where = choose_device(device)
    dataset = data.open(recipe.data, where)
    model = deployed_model(directory, recipe, dataset, where, which)
    found = scores(model, dataset, recalibrate_batches=recipe.run.recalibrate_batches)
    named = {"B": found.binary, "W": found.stale, "W†": found.latent}
    present = {name: score for name, score in named.items() if score is not None}
    if as_json:
        facts = {
            name: {"correct": s.correct, "total": s.total, "accuracy": s.accuracy, "interval": s.interval()}
            for name, s in present.items()
        }
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    for name, score in present.items():
        typer.echo(f"{name:<3} {score}")
