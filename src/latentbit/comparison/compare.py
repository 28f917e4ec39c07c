"""Methods on the same footing: one recipe, one network, one loop; only the method and the latent loss differ.

    latentbit compare --methods sign,sign+latent,irnet --recipe cifar10_resnet18_compact_quick --seeds 3

Or variants of a recipe, which differ in whatever they name:

    latentbit compare --recipe cifar10_16px --seeds 3 --variant "plain:" --variant "decay: weight_decay=1e-5"

Every run is kept in <out>/<contender>/seed<k>: a comparison that was stopped goes on where it was.
"""

import dataclasses
import json
import math
import shlex
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import latentbit.recipes
from latentbit import data, methods, runs
from latentbit.atomic import atomic_write
from latentbit.comparison.differences import LATENT
from latentbit.distributed.device import choose_device
from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.lbit.sizes import weigh
from latentbit.methods.parts.binarizer import NotDeployable
from latentbit.packing import CannotPack, pack
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.compiling import compile_pays
from latentbit.training.jobs import Job, train_all
from latentbit.training.memory import keep_freed_memory
from latentbit.training.state import TrainingState
from latentbit.views.numbers import W_DAGGER, B

BASELINE = "sign"
QUICK = ("digits_resnet18_compact", ["epochs=6", "eval_every=6", "checkpoint_every=6"])
"""A recipe that needs no download, and what makes it short."""
PUBLISHED = Path(__file__).parent / "published.toml"
TIMED_ROUNDS = 15


class ComparisonError(LatentbitError):
    """A comparison that cannot be made as asked."""


class Stopped(ComparisonError):
    """A signal ended it on the way."""


@dataclass(frozen=True)
class Contender:
    """A method, with or without the latent loss of the recipe beside it."""

    method: str
    latent: bool

    def __str__(self) -> str:
        return self.method + (LATENT if self.latent else "")


@dataclass(frozen=True)
class Row:
    """What a comparison found out about one contender. Accuracies are of the last epoch, one per seed."""

    contender: str
    binary: tuple[float, ...]
    latent: tuple[float, ...]
    step_seconds: float = math.nan
    step_ratio: float = math.nan
    """Time of a training step relative to the first contender."""
    inference: str = "nothing"
    """What is left of the method beside signs and scales, or why it cannot be packed."""
    packed_bytes: int | None = None
    published: float | None = None
    """Top-1 in per cent, for this data set and network."""
    source: str = ""
    problem: str = ""
    """Why there is no accuracy."""
    epochs: int = 0
    """Of each training."""


@dataclass(frozen=True)
class Variant:
    """The recipe with some of its values changed."""

    name: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def variants(texts: Sequence[str]) -> list[Variant]:
    """From "name: key=value key=value"; nothing behind the colon is the recipe as it is."""
    found = []
    for text in texts:
        name, colon, changes = text.partition(":")
        if not colon or not name.strip() or "/" in name:
            raise ComparisonError(
                f'--variant {text!r}: write a name without a slash, a colon and changes, "decay: weight_decay=1e-5"'
            )
        found.append(Variant(name.strip(), tuple(shlex.split(changes))))
    repeated = [str(variant) for variant in found if [v.name for v in found].count(variant.name) > 1]
    if repeated:
        raise ComparisonError(f"--variant {repeated[0]!r} is given twice: each needs a name of its own")
    return found


def contenders(text: str) -> list[Contender]:
    """From "sign,sign+latent,irnet"; "all" is every method, plain and with the latent loss."""
    if text == "all":
        names = sorted(methods.names(), key=lambda name: (name != BASELINE, name))
        return [Contender(name, latent) for name in names for latent in (False, True)]
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = part.removesuffix(LATENT)
        methods.find(name)
        found.append(Contender(name, part.endswith(LATENT)))
    if not found:
        raise ComparisonError("name at least one method: --methods sign,sign+latent or --methods all")
    return list(dict.fromkeys(found))


def recipe_of(name: str, overrides: Sequence[str], contender: Contender | Variant, seed: int) -> Recipe:
    """The recipe with this contender's method, and a latent loss only if it asks for one; or with its changes."""
    if isinstance(contender, Variant):
        recipe = latentbit.recipes.load(name, [*overrides, *contender.changes, f"seed={seed}"])
        return dataclasses.replace(recipe, name=f"{recipe.name}-{contender}-seed{seed}")
    recipe = latentbit.recipes.load(name, [*overrides, f"method={contender.method}", f"seed={seed}"])
    if contender.latent:
        latent = recipe.loss.latent if recipe.loss.latent != "none" else "label_aware"
        loss = dataclasses.replace(recipe.loss, latent=latent)
    else:
        loss = dataclasses.replace(recipe.loss, latent="none", soft_weight=0.0)  # no W to learn from either
    return dataclasses.replace(recipe, name=f"{recipe.name}-{contender}-seed{seed}", loss=loss)


def compare(
    chosen: Sequence[Contender | Variant],
    recipe: str,
    overrides: Sequence[str] = (),
    *,
    seeds: int = 1,
    out: Path,
    jobs: int = 1,
    quiet: bool = True,
) -> list[Row]:
    """Train what is not trained yet, time a step of each, and put all in rows; rows.json in `out` holds them too.

    `jobs` trainings run side by side, one thread each. A contender that fails keeps its row, with the reason.
    """
    asked = {c: [recipe_of(recipe, overrides, c, seed) for seed in range(seeds)] for c in chosen}
    wanted = [
        Job(f"{contender} seed {seed}", runs.place(one, at=out / str(contender) / f"seed{seed}"))
        for contender, recipes_of_seeds in asked.items()
        for seed, one in enumerate(recipes_of_seeds)
    ]
    results = train_all(wanted, jobs, quiet=quiet)
    if any(result is None for result in results.values()):
        raise Stopped("stopped; the same command continues from here")
    found = {c: [results[f"{c} seed {seed}"] for seed in range(seeds)] for c in chosen}
    problems = {
        c: next(str(result).splitlines()[0] for result in mine if isinstance(result, str))
        for c, mine in found.items()
        if any(isinstance(result, str) for result in mine)
    }
    able = {c: recipes_of_seeds[0] for c, recipes_of_seeds in asked.items() if c not in problems}
    seconds = step_seconds(able, quiet)
    base = next(iter(seconds.values()), math.nan)
    rows = []
    for contender in chosen:
        finished = [run for run in found[contender] if isinstance(run, RunDirectory)]
        ends = [run.metrics()[-1] for run in finished] if contender in able else []
        inference, n_bytes = left_at_inference(finished[0]) if contender in able else ("", None)
        value, source = published(asked[contender][0], contender)
        took = seconds.get(contender, math.nan)
        rows.append(
            Row(
                str(contender),
                tuple(end[B.metric] for end in ends),
                tuple(end[W_DAGGER.metric] for end in ends),
                took,
                took / base,
                inference,
                n_bytes,
                value,
                source,
                problems.get(contender, ""),
                asked[contender][0].optim.epochs,
            )
        )
    with atomic_write(out / "rows.json") as file:
        file.write(json.dumps([dataclasses.asdict(row) for row in rows], indent=2).encode() + b"\n")
    return rows


def step_seconds(
    recipes: Mapping[Contender | Variant, Recipe], quiet: bool = True
) -> dict[Contender | Variant, float]:
    """Minimum time of a training step: what else runs on the machine only adds to it. Contenders take turns.

    Compiled where the training is: the views of a joint step gain less from it than a single one.
    """
    keep_freed_memory()
    steps: dict[Contender | Variant, Callable[[], float]] = {}
    for contender, recipe in recipes.items():
        if not quiet:
            print(f"timing {TIMED_ROUNDS} steps of each: preparing {contender}", flush=True)
        steps[contender] = _timed_step(recipe)
        steps[contender]()  # the first one allocates
    times: dict[Contender | Variant, list[float]] = {contender: [] for contender in recipes}
    for _ in range(TIMED_ROUNDS):
        for contender, step in steps.items():
            times[contender].append(step())
    return {contender: min(values) for contender, values in times.items()}


def _timed_step(recipe: Recipe) -> Callable[[], float]:
    device = choose_device(recipe.run.device)
    dataset = data.open(recipe.data, device)
    size = recipe.data.batch_size
    images, labels = next(iter(dataset.train_batches(0, batch_size=size, seed=0)))
    steps = dataset.steps_per_epoch(size)
    compiled = compile_pays(recipe.run.compile, device, recipe.optim.epochs * steps)
    state = TrainingState(recipe, DatasetFacts.of(dataset), device, steps, compiled=compiled)
    state.begin_epoch()

    def step() -> float:
        started = time.perf_counter()
        state.step(images, labels)
        state.meter.read_latest()  # waits for the device
        return time.perf_counter() - started

    return step


def left_at_inference(run: RunDirectory) -> tuple[str, int | None]:
    """What a packed file keeps of the method beside signs and scales, and its size; or why there is no file."""
    model = run.network("last")
    layer = next(module for module in model.modules() if isinstance(module, BINARY_LAYERS))
    try:
        deployed = layer.binarizer.deploy(layer.weight.detach())
        n_bytes = weigh(pack(model, torch.zeros(1, *run.facts().input_shape))).file_bytes
    except NotDeployable as error:
        return f"not packed: {error}", None
    except CannotPack as error:
        return f"not packed: {str(error).partition(': ')[2]}", None
    return deployed.extras(), n_bytes


def published(recipe: Recipe, contender: Contender | Variant) -> tuple[float | None, str]:
    """The accuracy that others print for this data set, network and method, and where it is from."""
    if isinstance(contender, Variant):
        return None, ""
    dataset = "imagenet" if recipe.name.startswith("imagenet") else recipe.data.dataset
    table = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    value = table.get(dataset, {}).get(recipe.model.network, {}).get(str(contender))
    return (float(value[0]), str(value[1])) if value else (None, "")
