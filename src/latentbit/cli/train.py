"""`latentbit train`."""

import functools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from latentbit.cli import TrustCode, recipe_names

if TYPE_CHECKING:
    from latentbit.training.train import Training


def train(
    recipe: str = typer.Argument(
        "",
        help="Name of a recipe (`latentbit recipes list`) or a .toml file.",
        autocompletion=recipe_names,
    ),
    overrides: list[str] = typer.Argument(None, metavar="[KEY=VALUE]...", help="Values to change."),
    out: Path | None = typer.Option(None, help="Run directory; runs/<recipe> by default, numbered if taken."),
    resume: Path | None = typer.Option(None, help="Continue this run directory exactly where it stopped."),
    accept_changes: bool = typer.Option(
        False, "--accept-changes", help="With --resume: go on although recipe.toml was edited."
    ),
    extend: bool = typer.Option(
        False,
        "--extend",
        help="With --resume RUN epochs=N: give the run more epochs. Needs a constant learning rate.",
    ),
    device: str = typer.Option("", help="auto, cpu, cuda or mps; the same as device=..."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show the plan and what it costs: speed, memory, time. Train nothing."
    ),
    devices: int = typer.Option(0, min=0, help="With --dry-run: so many devices share the work."),
    device_speed: float = typer.Option(
        0.0, min=0.0, help="With --devices: images/s of one in training. Default: as measured here."
    ),
    bandwidth: float = typer.Option(10.0, min=0.001, help="With --devices: Gbit/s between two of them."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show nothing while training."),
    trust_code: TrustCode = False,
) -> None:
    """Train a recipe and leave a run directory: recipe, environment, metrics, checkpoints.

    [bold]Examples[/bold]

    latentbit train digits_resnet18_compact_baseline

    latentbit train cifar10_resnet18_compact epochs=2 seed=1

    latentbit train cifar10_resnet18_compact seed=0,1,2

    latentbit train --resume runs/cifar10_resnet18_compact

    latentbit train --resume runs/mine --extend epochs=40

    latentbit train imagenet_resnet18 --dry-run --devices 8 --device-speed 1500 --bandwidth 100

    latentbit train imagenet_resnet18 root=/data/imagenet start=resnet18.safetensors

    latentbit train digits_resnet18_compact first.real_weights=true first.epochs=4

    latentbit train digits_resnet18_compact network=my_net.py:make_net dataset=my_data.py:make_data

    torchrun --nproc-per-node 4 -m latentbit train imagenet_resnet18 root=/data/imagenet
    """
    from latentbit import recipes, runs
    from latentbit.training.train import train

    if (resume is None) == (recipe == "" or "=" in recipe):
        raise typer.BadParameter("give a recipe to start or --resume RUN to continue, one of the two")
    if resume is not None:
        # What follows --resume RUN is an override, though it stands where a recipe would.
        changes = [*([recipe] if "=" in recipe else []), *(overrides or [])]
        longer = _epochs_of(changes)
        if extend and longer is None:
            raise typer.BadParameter(
                "--extend needs the epochs of the whole run: --resume RUN --extend epochs=40"
            )
        if (changes and not extend) or out or device or dry_run or (recipe and "=" not in recipe):
            more = (
                f"--resume {resume} --extend {changes[0]} gives it more epochs. "
                if longer is not None
                else ""
            )
            what = changes[0] if changes else "anything"
            raise typer.BadParameter(
                f"a resumed run keeps its recipe and place: leave out everything but --resume. {more}To change {what}, "
                f"edit {resume / 'recipe.toml'} and add --accept-changes, or start a new run"
            )
        opened = runs.open(resume)
        chosen = opened.recipe() if longer is None else runs.extend(opened, longer)
        _tell([train(chosen, resume=resume, accept_changes=accept_changes, quiet=quiet)], quiet)
        return
    changes = [*(overrides or []), *([f"device={device}"] if device else [])]
    if device_speed and not devices:
        raise typer.BadParameter("--device-speed is that of --devices N: say how many")
    if dry_run:
        from latentbit.training.plan import Devices, plan

        wanted = Devices(devices, device_speed, bandwidth) if devices else None
        say = functools.partial(typer.echo, err=True)
        for line in plan(recipes.load(recipe, _of_seeds(changes)[0]), wanted, say):
            typer.echo(line)
        return
    if devices:
        raise typer.BadParameter(
            "--devices and --device-speed are for --dry-run: torchrun starts many processes"
        )
    done = []
    for one in _of_seeds(changes):
        loaded = recipes.load(recipe, one)
        several = len(_of_seeds(changes)) > 1
        place = out / f"seed{loaded.run.seed}" if out and several else out
        done.append(train(loaded, out=place, quiet=quiet))
        if done[-1].scores is None:
            break
    _tell(done, quiet)


def _epochs_of(changes: list[str]) -> int | None:
    """N of epochs=N, if that alone is asked for."""
    if len(changes) == 1:
        key, _, value = changes[0].partition("=")
        if key in ("epochs", "optim.epochs") and value.isdigit():
            return int(value)
    return None


def _of_seeds(changes: list[str]) -> list[list[str]]:
    """seed=0,1,2 stands for three runs."""
    for i, change in enumerate(changes):
        key, _, value = change.partition("=")
        if key in ("seed", "run.seed") and "," in value:
            return [[*changes[:i], f"{key}={seed}", *changes[i + 1 :]] for seed in value.split(",")]
    return [changes]


def _tell(done: "list[Training]", quiet: bool) -> None:
    """Accuracies, then what to do next. A run that a signal stopped ends the command with 130, as in a shell."""
    if int(os.environ.get("RANK", "0")) == 0 and not quiet:
        for run, scores in done:
            if scores is None:
                continue
            named = scores.named()
            typer.echo(f"{run.epoch_in_words('last')}; on {scores.binary.total} test images:")
            longest = max(len(f"{score}   {number.short}") for number, score in named.items()) + 4
            gap = "   " if longest <= shutil.get_terminal_size().columns else "\n    "
            for number, score in named.items():
                typer.echo(f"{number.name:<3} {score}" + (f"{gap}{number.short}" if len(named) > 1 else ""))
            typer.echo(f"run in {run.path}")
        finished = [str(run.path) for run, scores in done if scores is not None]
        if finished:
            typer.echo(f"next: latentbit pack {finished[0]}\n      latentbit report {' '.join(finished)}")
    if any(scores is None for _, scores in done):
        raise typer.Exit(130)
