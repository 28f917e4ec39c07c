"""A recipe: everything a run depends on, as frozen dataclasses read from TOML and `key=value` overrides.

    load("cifar10_resnet18_compact", ["epochs=2", "optim.lr=1e-3"])

Names of fields are unique over all sections, so an override may leave the section out. A recipe file may
say `extends = "other"` at its top; what it says itself then goes over what the other one says.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from latentbit import schema
from latentbit.errors import LatentbitError
from latentbit.schema import Range

Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Positive = Annotated[float, Range(1e-30)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]


class RecipeError(LatentbitError):
    """A recipe that can not be run as written; `problems` holds one line for each fault."""

    def __init__(self, source: str, problems: Sequence[str]):
        self.problems = list(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count} in recipe {source}:\n" + "\n".join(f"  - {p}" for p in problems))


@dataclass(frozen=True)
class Data:
    dataset: Literal["digits", "cifar10", "cifar100", "image_folder"] = "cifar10"
    """What to train on; `latentbit data list` shows them."""
    root: str = ""
    """Folder of an image_folder: train/ and val/ with a folder per class, or the class folders alone."""
    batch_size: Count = 128
    """Images per step, over all processes together."""
    pad: Natural = 2
    """Black pixels on each side before a random crop of the original size; not used by an image_folder."""
    flip: bool = False
    """Mirror half of the training images; the paper does so on ImageNet only."""
    image_size: Natural = 0
    """Side of the square the network sees; 0 is the data's own (8, 32) or 224 for an image_folder."""
    resize: Count = 256
    """Short side an image_folder's images are scaled to before the crop."""
    workers: Natural = 2
    """Processes that decode an image_folder's images; 0 decodes in the training process."""


@dataclass(frozen=True)
class Model:
    network: str = "resnet18_compact"
    """A network of latentbit.models."""
    method: str = "sign"
    """How weights and activations become bits: a file of latentbit/methods."""
    binarize: bool = True
    """False trains the same network with 32-bit weights and activations."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the network, as a table."""


@dataclass(frozen=True)
class Loss:
    latent: Literal["none", "instance", "label_aware", "label_contrastive", "reconstruction", "latent_ce"] = (
        "none"
    )
    """What the latent weights teach the binary ones."""
    latent_weight: NotNegative = 1e-4
    """Lambda, the weight of the latent loss."""
    projection: Literal["learned", "orthogonal", "none"] = "learned"
    """The linear map in front of the latent loss: trained, fixed, or absent."""
    dim: Count = 32
    """Size of the projected features; the paper uses 32 on CIFAR and 128 on ImageNet."""
    temperature: Positive = 0.1
    """Of label_contrastive; lower looks at the hardest negatives only."""
    teacher: str = ""
    """Run directory or checkpoint whose soft labels replace the labels (label refinery)."""
    label_smoothing: Share = 0.0
    """Share of each label spread over all classes."""
    center_weight: NotNegative = 0.0
    """Weight of the pull of features to the centre of their class."""


@dataclass(frozen=True)
class Optim:
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """Adam, AdamW, or SGD with Nesterov momentum."""
    lr: Positive = 5e-3
    """Learning rate at the top of the schedule."""
    weight_decay: NotNegative = 1e-6
    """Applied to latent weights as well: more of it flips more bits."""
    momentum: Share = 0.9
    """Of sgd; the others ignore it."""
    epochs: Count = 300
    """Passes over the training set."""
    warmup_epochs: NotNegative = 0.0
    """Epochs of linear rise from 0 to lr, part of `epochs`."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How lr goes to 0 after the warm-up, per step."""
    clip_norm: NotNegative = 0.0
    """Largest norm of the gradient; 0 does not clip."""
    ema: Share = 0.0
    """Decay of the running average of the weights that is evaluated; 0 turns it off."""


@dataclass(frozen=True)
class Run:
    seed: Natural = 0
    """Fixes initial weights, order and augmentation of the images."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to train; auto takes cuda, then mps, then cpu."""
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile; auto uses it where it pays."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Of the matrix products; auto takes bf16 on devices that have it in hardware."""
    sync_batchnorm: bool = False
    """Share batch statistics between processes."""
    eval_every: Count = 1
    """Epochs from one evaluation to the next; the last epoch is always evaluated."""
    checkpoint_every: Count = 1
    """Epochs from one checkpoint to the next; the last epoch is always kept."""
    recalibrate_batches: Count = 100
    """Training batches used to renew the batch statistics of the latent weights."""


@dataclass(frozen=True)
class Recipe:
    name: str = "custom"
    """The file's own name unless it says another; the run directory is called so."""
    data: Data = Data()
    model: Model = field(default_factory=Model)
    loss: Loss = Loss()
    optim: Optim = Optim()
    run: Run = Run()


SECTIONS: dict[str, type] = {"data": Data, "model": Model, "loss": Loss, "optim": Optim, "run": Run}
HOME = {key: section for section, cls in SECTIONS.items() for key in schema.hints(cls)}
FOLDER = Path(__file__).parent / "recipes"


def names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def path_of(name: str) -> Path:
    """The file of a recipe given by name, or by the path of a .toml file."""
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path
    if name in names():
        return FOLDER / f"{name}.toml"
    what = "recipe file" if path.suffix == ".toml" or "/" in name else "recipe"
    hint = schema.nearest(path.stem, names())
    raise RecipeError(repr(name), [f"there is no such {what}{hint} `latentbit recipes list` shows all"])


def load(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of that name or path, with `key=value` overrides applied; every fault reported at once."""
    path = path_of(name)
    problems: list[str] = []
    tables = _tables(path, problems, seen=())
    for text in overrides:
        _override(tables, text, problems)
    recipe = _build(tables, path.stem, problems)
    problems += _contradictions(recipe) if not problems else []
    if problems:
        raise RecipeError(str(path) if path.parent != FOLDER else path.stem, problems)
    return recipe


def dumps(recipe: Recipe, header: str = "") -> str:
    """TOML text that loads back to an equal recipe."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    lines.append(f"name = {schema.toml_value(recipe.name)}")
    for section in SECTIONS:
        lines += ["", f"[{section}]"]
        values = vars(getattr(recipe, section))
        lines += [f"{key} = {schema.toml_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _tables(path: Path, problems: list[str], seen: tuple[Path, ...]) -> dict[str, Any]:
    """The tables of a file over those of the file it extends; what is wrong goes to `problems`."""
    text = path.read_text(encoding="utf-8")
    try:
        own = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(str(path), [f"not valid TOML: {error}"]) from None
    parent = own.pop("extends", None)
    own_problems = _check(own, text)
    merged: dict[str, Any] = {}
    if parent is not None:
        beside = path.parent / f"{parent}.toml"
        above = beside if beside.is_file() else path_of(str(parent))
        if above.resolve() in (path.resolve(), *seen):
            raise RecipeError(str(path), [f"extends goes round in a circle at {parent!r}"])
        merged = _tables(above, problems, (*seen, path.resolve()))
        merged.pop("name", None)
    problems += [f"{path.name}: {p}" for p in own_problems] if seen else own_problems
    _merge(merged, own)
    return merged


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _check(tables: Mapping[str, Any], text: str) -> list[str]:
    """Unknown sections and keys, wrong types and values, each with its line."""
    problems: list[str] = []

    def add(section: str, key: str, what: str) -> None:
        line = schema.line_of(text, section, key)
        at = f"line {line}: " if line else ""
        problems.append(f"{at}{'.'.join(filter(None, (section, key)))}: {what}")

    for section, table in tables.items():
        if section == "name":
            if not isinstance(table, str):
                add("", "name", schema.problem_with(table, str))
        elif section in HOME:
            add("", section, f"is no section, it belongs in [{HOME[section]}]")
        elif section not in SECTIONS:
            add("", section, f"unknown section{schema.nearest(section, SECTIONS)}")
        elif not isinstance(table, dict):
            add("", section, "is a section, write it as a table")
        else:
            for key, value in table.items():
                if what := _fault(section, key, value):
                    add(section, key, what)
    return problems


def _fault(section: str, key: str, value: Any) -> str:
    valid = schema.hints(SECTIONS[section])
    if key in valid:
        return schema.problem_with(value, valid[key]) or _unknown_name(key, value)
    if key in HOME:
        return f"unknown key here, it belongs in [{HOME[key]}]"
    return f"unknown key{schema.nearest(key, valid) or schema.nearest(key, HOME)}"


def _unknown_name(key: str, value: Any) -> str:
    """Networks and methods are files of their packages: looked up there, listed nowhere else."""
    if key == "network":
        from latentbit import models

        known = models.names()
    elif key == "method":
        from latentbit import methods

        known = methods.names()
    else:
        return ""
    return "" if value in known else f"no {key} {value!r}{schema.nearest(value, known)} ({', '.join(known)})"


def _override(tables: dict[str, Any], text: str, problems: list[str]) -> None:
    """Put one `key=value`, `section.key=value` or `options.key=value` into the tables."""
    dotted, equals, value = text.partition("=")
    path = dotted.strip().split(".")
    if not equals or not all(path):
        problems.append(f"override {text!r}: write it as key=value")
        return
    if path[0] not in SECTIONS and path[0] in HOME:
        path.insert(0, HOME[path[0]])
    section = path[0]
    if section not in SECTIONS or len(path) < 2:
        every = [*HOME, *(f"{home}.{key}" for key, home in HOME.items())]
        problems.append(f"override {text!r}: unknown key{schema.nearest(dotted.strip(), every)}")
        return
    key = path[1]
    hint = schema.hints(SECTIONS[section]).get(key)
    if len(path) > 2 and key == "options":
        options = tables.setdefault(section, {}).setdefault(key, {})
        options[".".join(path[2:])] = schema.parse(value.strip(), Any)
        return
    if len(path) > 2:
        problems.append(f"override {text!r}: {section}.{key} has no parts")
        return
    parsed = schema.parse(value.strip(), hint)
    if what := _fault(section, key, parsed):
        problems.append(f"override {text!r}: {what}")
    else:
        tables.setdefault(section, {})[key] = parsed


def _build(tables: Mapping[str, Any], stem: str, problems: list[str]) -> Recipe:
    """The dataclasses; after a fault only those values that are sound, so that every check still runs."""
    if problems:
        return Recipe()
    sections = {}
    for section, cls in SECTIONS.items():
        hints = schema.hints(cls)
        values = tables.get(section, {})
        sections[section] = cls(**{key: schema.settle(value, hints[key]) for key, value in values.items()})
    return Recipe(name=tables.get("name", stem), **sections)


def _contradictions(recipe: Recipe) -> list[str]:
    """Values that are sound alone and senseless together."""
    found = []
    if recipe.loss.latent != "none" and not recipe.model.binarize:
        found.append(
            f"loss.latent = {recipe.loss.latent!r} needs latent weights, but model.binarize is false: "
            "set loss.latent = 'none' for the FP32 twin"
        )
    if recipe.optim.warmup_epochs > recipe.optim.epochs:
        found.append(
            f"optim.warmup_epochs = {recipe.optim.warmup_epochs:g} is longer than "
            f"optim.epochs = {recipe.optim.epochs}"
        )
    return found
