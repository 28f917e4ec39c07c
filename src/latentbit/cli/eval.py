"""`latentbit eval`."""

from pathlib import Path
from typing import Literal

import typer

from latentbit.cli import TrustCode


def eval(
    run: Path = typer.Argument(..., help="Run directory of `latentbit train`."),
    which: Literal["best", "last"] | None = typer.Option(
        None, help="Which network of the run. Default: best if validation images chose it, else last."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
    trust_code: TrustCode = False,
) -> None:
    """Print the accuracies of a run: B, W and W-dagger, with confidence intervals.

    [bold]Examples[/bold]

    latentbit eval runs/cifar10_resnet18_compact

    latentbit eval runs/cifar10_resnet18_compact --which last --json
    """
    import json

    from latentbit import runs
    from latentbit.distributed.device import choose_device
    from latentbit.training.evaluate import scores
    from latentbit.training.memory import keep_freed_memory

    keep_freed_memory()
    opened, where = runs.open(run), choose_device(device)
    model, dataset = opened.network(which, where), opened.dataset(where)
    recipe = opened.recipe()
    found = scores(  # with the batches that training collected statistics from: the same W-dagger
        model,
        dataset,
        batch_size=recipe.data.batch_size,
        recalibrate_batches=recipe.run.recalibrate_batches,
    )
    present = {number.name: score for number, score in found.named().items()}
    if as_json:
        facts = {
            name: {"correct": s.correct, "total": s.total, "accuracy": s.accuracy, "interval": s.interval()}
            for name, s in present.items()
        }
        about = {"epoch": opened.epoch_in_words(which), "split": "test"}
        typer.echo(json.dumps(facts | {"of": about}, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{opened.epoch_in_words(which)}; on {found.binary.total} test images:")
    for name, score in present.items():
        typer.echo(f"{name:<3} {score}")
