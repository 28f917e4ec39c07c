"""Methods on the same footing: one recipe, one network, one loop; only the method and the latent loss differ.

    latentbit compare --methods sign,sign+latent,irnet --recipe cifar10_resnet18_compact_quick --seeds 3

Every run is kept in <out>/<contender>/seed<k>: a comparison that was stopped goes on where it was.
"""

import dataclasses
import json
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import latentbit.recipes
from latentbit import data, methods
from latentbit.atomic import atomic_write
from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS
from latentbit.lbit.sizes import weigh
from latentbit.methods.parts.binarizer import NotDeployable
from latentbit.packing import CannotPack, pack
from latentbit.recipes import Recipe
from latentbit.runs.directory import RunDirectory
from latentbit.training import optimizers
from latentbit.training.build import build_model, build_objective, deployed_model
from latentbit.training.device import choose_device
from latentbit.training.train import train

LATENT = "+latent"
BASELINE = "sign"
QUICK = ("digits_resnet18_compact", ["epochs=6", "eval_every=6", "checkpoint_every=6"])
"""A recipe that needs no download, and what makes it short."""
PUBLISHED = Path(__file__).parent / "published.toml"
TIMED_ROUNDS = 15


class ComparisonError(LatentbitError):
    """A comparison that can not be made as asked, or was stopped on the way."""


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
    step_seconds: float
    step_ratio: float
    """Time of a training step relative to the first contender."""
    inference: str
    """What is left of the method beside signs and scales, or why it can not be packed."""
    packed_bytes: int | None
    published: float | None
    """Top-1 in per cent, for this data set and network."""
    source: str
    problem: str = ""
    """Why there is no accuracy."""


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


def recipe_of(name: str, overrides: Sequence[str], contender: Contender, seed: int) -> Recipe:
    """The recipe with this contender's method; a latent loss only if it asks for one."""
    recipe = latentbit.recipes.load(name, [*overrides, f"method={contender.method}", f"seed={seed}"])
    latent = recipe.loss.latent if recipe.loss.latent != "none" else "label_aware"
    loss = dataclasses.replace(recipe.loss, latent=latent if contender.latent else "none")
    return dataclasses.replace(recipe, name=f"{recipe.name}-{contender}-seed{seed}", loss=loss)


def compare(
    chosen: Sequence[Contender],
    recipe: str,
    overrides: Sequence[str] = (),
    *,
    seeds: int = 1,
    out: Path,
    say: Callable[[str], None] = lambda line: None,
    show_training: bool = False,
) -> list[Row]:
    """Train what is not trained yet, time a step of each, and put all in rows; rows.json in `out` holds them too.

    `say` hears which run begins; `show_training` also shows the progress of each run.
    """
    asked = {c: [recipe_of(recipe, overrides, c, seed) for seed in range(seeds)] for c in chosen}
    runs: dict[Contender, list[RunDirectory]] = {}
    problems: dict[Contender, str] = {}
    for n, (contender, recipes) in enumerate(asked.items()):
        runs[contender] = []
        for seed, one in enumerate(recipes):
            say(f"[{n + 1}/{len(asked)}] {contender}, seed {seed}")
            try:
                runs[contender].append(_run(one, out / str(contender) / f"seed{seed}", not show_training))
            except ComparisonError:
                raise
            except LatentbitError as error:
                problems[contender] = str(error).splitlines()[0]
                say(f"  {problems[contender]}")
                break
    say("timing a step of each")
    able = {c: recipes[0] for c, recipes in asked.items() if c not in problems}
    seconds = step_seconds(able)
    base = next(iter(seconds.values()), float("nan"))
    rows = []
    for contender in chosen:
        ends = [run.metrics()[-1] for run in runs[contender]] if contender in able else []
        inference, n_bytes = left_at_inference(runs[contender][0]) if contender in able else ("", None)
        value, source = published(asked[contender][0], contender)
        took = seconds.get(contender, float("nan"))
        rows.append(
            Row(
                str(contender),
                tuple(end["accuracy_b"] for end in ends),
                tuple(end["accuracy_w_dagger"] for end in ends),
                took,
                took / base,
                inference,
                n_bytes,
                value,
                source,
                problems.get(contender, ""),
            )
        )
    with atomic_write(out / "rows.json") as file:
        file.write(json.dumps([dataclasses.asdict(row) for row in rows], indent=2).encode() + b"\n")
    return rows


def _run(recipe: Recipe, path: Path, quiet: bool) -> RunDirectory:
    """The finished run of a recipe: found, continued or made."""
    resume = None
    if (path / "recipe.toml").is_file():
        run = RunDirectory.open(path)
        if run.recipe() != recipe:
            raise ComparisonError(f"{path} holds a run of another recipe: choose another --out or remove it")
        if run.finished:
            return run
        resume = path
    run, scores = train(recipe, out=None if resume else path, resume=resume, quiet=quiet)
    if scores is None:
        raise ComparisonError("stopped; the same command goes on from here")
    return run


def step_seconds(recipes: Mapping[Contender, Recipe]) -> dict[Contender, float]:
    """Least time of a training step: what else runs on the machine only adds to it. Contenders take turns."""
    steps: dict[Contender, Callable[[], float]] = {}
    for contender, recipe in recipes.items():
        steps[contender] = _timed_step(recipe)
        steps[contender]()  # the first one allocates
    times: dict[Contender, list[float]] = {contender: [] for contender in recipes}
    for _ in range(TIMED_ROUNDS):
        for contender, step in steps.items():
            times[contender].append(step())
    return {contender: min(values) for contender, values in times.items()}


def _timed_step(recipe: Recipe) -> Callable[[], float]:
    device = choose_device(recipe.run.device)
    dataset = data.open(recipe.data, device)
    model = build_model(recipe, dataset.num_classes, dataset.in_channels)
    objective = build_objective(recipe.loss, model, dataset.num_classes).to(device).train()
    optimizer = optimizers.create(objective, recipe.optim)
    layers = [layer for layer in model.modules() if isinstance(layer, BINARY_LAYERS)]
    batches = dataset.train_batches(
        0, batch_size=recipe.data.batch_size, seed=0, rank=0, world=1, start_step=0
    )
    images, labels = next(iter(batches))

    def step() -> float:
        started = time.perf_counter()
        loss = objective(images, labels).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in layers:
                layer.binarizer.after_step(layer.weight, recipe.optim.lr)
        float(loss.detach())  # waits for the device
        return time.perf_counter() - started

    return step


def left_at_inference(run: RunDirectory) -> tuple[str, int | None]:
    """What a packed file keeps of the method beside signs and scales, and its size; or why there is no file."""
    recipe = run.recipe()
    device = torch.device("cpu")
    dataset = data.open(recipe.data, device)
    model = deployed_model(run, recipe, dataset, device, "last")
    layer = next(module for module in model.modules() if isinstance(module, BINARY_LAYERS))
    images, _ = next(iter(dataset.test_batches(2, 0, 1)))
    try:
        deployed = layer.binarizer.deploy(layer.weight.detach())
        n_bytes = weigh(pack(model, images)).file_bytes
    except NotDeployable as error:
        return f"not packed: {error}", None
    except CannotPack as error:
        return f"not packed: {str(error).partition(': ')[2]}", None
    return deployed.extras(), n_bytes


def published(recipe: Recipe, contender: Contender) -> tuple[float | None, str]:
    """The accuracy that others print for this data set, network and method, and where it is from."""
    dataset = "imagenet" if recipe.name.startswith("imagenet") else recipe.data.dataset
    table = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    value = table.get(dataset, {}).get(recipe.model.network, {}).get(str(contender))
    return (float(value[0]), str(value[1])) if value else (None, "")
