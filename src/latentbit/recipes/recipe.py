"""A recipe: everything a run depends on, as frozen dataclasses read from TOML and `key=value` overrides.

    load("cifar10_resnet18_compact", ["epochs=2", "optim.lr=1e-3", "method=irnet", "method.t_min=0.1"])

Names of fields are unique over all sections, so an override may leave the section out; only options of the method
need it. A recipe file may say `extends = "other"` at its top; what it says itself then goes over what the other one
says.
"""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from latentbit.errors import LatentbitError, nearest
from latentbit.fields import LARGEST, OneOf, Range, settle
from latentbit.imports import is_import, read_from
from latentbit.recipes import first, method, schema
from latentbit.recipes.method import Method
from latentbit.recipes.schema import Sections

Count = Annotated[int, Range(1, LARGEST)]
Natural = Annotated[int, Range(0, LARGEST)]
Positive = Annotated[float, Range(1e-30)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 0.999999)]


class RecipeError(LatentbitError):
    """A recipe that cannot be run as written; `problems` holds one line for each fault."""

    def __init__(self, source: str, problems: Sequence[str]):
        self.problems = list(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count} in recipe {source}:\n" + "\n".join(f"  - {p}" for p in problems))


@dataclass(frozen=True)
class Data:
    dataset: Annotated[str, OneOf(("digits", "cifar10", "cifar100", "image_folder", "shards"))] = "cifar10"
    """What to train on; `latentbit data list` shows them. Or a function of your own: my_file.py:my_data."""
    root: str = ""
    """Folder of an image_folder: train/ and val/ with a folder per class, or the class folders alone. Of shards: the
    folder of tar files. A function of your own gets it if it has an argument `root`."""
    batch_size: Count = 128
    """Images per step, over all processes together."""
    pad: Natural = 2
    """Black pixels on each side before a random crop of the original size; not used by an image_folder or shards."""
    flip: bool = False
    """Mirror half of the training images; the paper does so on ImageNet only."""
    image_size: Natural = 0
    """Side of the square the network sees; 0 is the data's own (8, 32) or 224 for an image_folder or shards."""
    resize: Count = 256
    """Short side that images of an image_folder or of shards are scaled to: in a test before the centre is cut, in
    training before crop = "random"."""
    crop: Literal["random", "random_resized"] = "random"
    """How training images of an image_folder or of shards are cut: "random" scales the short side to `resize` and cuts
    a square at a random place; "random_resized" cuts a random part, of any size and shape within the next three keys,
    and scales it."""
    crop_smallest: Annotated[float, Range(1e-4, 1)] = 0.08
    """Smallest part of a random_resized crop, as a share of the image's area; each share is as likely as any other."""
    crop_largest: Annotated[float, Range(1e-4, 1)] = 1.0
    """Largest part."""
    crop_ratio: Annotated[float, Range(1, 100)] = 4 / 3
    """Width to height of a random_resized crop goes from 1 / crop_ratio to crop_ratio, evenly by its logarithm."""
    brightness: NotNegative = 0.0
    """Training images are multiplied by 1 - brightness to 1 + brightness. This and the next three, each by a random
    amount and in random order, are what is called colour jitter; 0 leaves the colours."""
    contrast: NotNegative = 0.0
    """The same, around the mean grey of the image."""
    saturation: NotNegative = 0.0
    """The same, around the grey of each pixel."""
    hue: Annotated[float, Range(0, 0.5)] = 0.0
    """Colours are turned by -hue to hue of the circle of colours."""
    lighting: NotNegative = 0.0
    """Standard deviation of the noise along the main colours of ImageNet that is added to training images; AlexNet's
    is 0.1."""
    exact: bool = False
    """True decodes all of every training image and scales it by Pillow. False is about twice as fast; docs/data.md says
    how far pixels can differ. Tests are always exact."""
    broken_limit: Natural = 0
    """Images of an image_folder or of shards that may be broken and left out, each named, by each process; one more
    ends the training. 0 ends it at the first."""
    val: Annotated[float, Range(0, 0.9)] = 0.0
    """Share of the training images, the same of every class, kept apart to choose the best epoch by; 0 keeps none."""
    val_seed: Natural = 0
    """Which images those are; the seed of the run does not change them."""
    workers: Natural = 2
    """Processes that read the images of an image_folder, of shards or of your own data; 0 reads them in the training
    process."""


@dataclass(frozen=True)
class Model:
    network: str = "resnet18_compact"
    """A network of latentbit.models, or a function of your own: my_file.py:my_function or my_module:my_function."""
    binarize: bool = True
    """False trains the same network with 32-bit weights and activations."""
    real_weights: bool = False
    """True makes the activations binary and leaves the weights real, as the first of two stages often does: [first]."""
    start: str = ""
    """Where the first weights come from: a run directory, or a file of latentbit, torchvision or timm (safetensors, or
    a state dict of torch.save). What fits by name and shape is taken, and told."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the network, as a table."""


@dataclass(frozen=True)
class Loss:
    latent: Annotated[
        str,
        OneOf(("none", "instance", "label_aware", "label_contrastive", "reconstruction", "latent_ce")),
    ] = "none"
    """What the latent weights teach the binary ones; or my_file.py:my_loss, my_module:my_loss."""
    latent_weight: NotNegative = 1e-4
    """Lambda, the weight of the latent loss."""
    projection: Literal["learned", "orthogonal", "none"] = "learned"
    """The linear map in front of the latent loss: trained, fixed, or absent."""
    dim: Annotated[int, Range(1, 2**16)] = 32
    """Size of the projected features; the paper uses 32 on CIFAR and 128 on ImageNet."""
    temperature: Positive = 0.1
    """Of label_contrastive; lower looks at the hardest negatives only."""
    soft_weight: Share = 0.0
    """Share of the cross-entropy that B takes from the soft labels of the latent view. With latent = "latent_ce" both
    views learn the labels, and B learns from W as well: joint training."""
    teacher: str = ""
    """Run directory or checkpoint whose soft labels replace the labels (label refinery)."""
    attention_weight: NotNegative = 0.0
    """Weight of the distance of attention maps to the teacher's, at the end of each stage (Real-to-Binary)."""
    distribution_weight: NotNegative = 0.0
    """Weight of the pull of binary layers' inputs to distributions whose signs tell something (Ding et al. use 2)."""
    distribution_until: Annotated[float, Range(0, 1)] = 60 / 65
    """Share of training after which that pull is dropped."""
    label_smoothing: Share = 0.0
    """Share of each label spread over all classes."""
    center_weight: NotNegative = 0.0
    """Weight of the pull of features to the centre of their class."""
    center_variance: bool = False
    """Learn a variance for each class and feature around its centre, as BONN does."""


@dataclass(frozen=True)
class Optim:
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """Adam, AdamW, or SGD with momentum."""
    lr: Positive = 5e-3
    """Learning rate at the top of the schedule."""
    weight_decay: NotNegative = 1e-6
    """Applied to latent weights as well: more of it flips more bits."""
    momentum: Share = 0.9
    """Of sgd; the others ignore it."""
    nesterov: bool = True
    """Of sgd: Nesterov's momentum, or the plain one that most releases of methods use."""
    epochs: Count = 300
    """Passes over the training set."""
    warmup_epochs: NotNegative = 0.0
    """Epochs of linear rise from 0 to lr, part of `epochs`."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How lr goes to 0 after the warm-up, per step."""
    clip_norm: NotNegative = 0.0
    """Largest norm of the gradient; 0 does not clip."""
    accumulate: Count = 1
    """Parts that the batch of a step is computed in, one after the other: less memory, the same gradient. Only
    BatchNorm and losses that compare images see one part at a time."""
    ema: Share = 0.0
    """Decay of the running average of the weights that is evaluated; 0 turns it off."""


@dataclass(frozen=True)
class Run:
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Fixes initial weights, order and augmentation of the images."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to train; auto takes cuda, then mps, then cpu."""
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile; auto uses it where it pays."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Of the products in training; auto takes bf16 on GPUs that have it in hardware. Weights, statistics, losses and
    evaluation stay fp32."""
    sync_batchnorm: bool = False
    """Share batch statistics between processes; a few kB a step and two exchanges for each BatchNorm."""
    log_every: Count = 10
    """Steps from one reading of the loss to the next; reading waits for the device."""
    eval_every: Count = 1
    """Epochs from one evaluation to the next; the last epoch is always evaluated."""
    latent_eval_every: Natural = 0
    """Epochs from one evaluation of W and W-dagger to the next; 0 takes about ten in a run. The last is always one."""
    checkpoint_every: Count = 1
    """Epochs from one checkpoint to the next; the last epoch is always kept."""
    checkpoint_minutes: Positive = 10.0
    """Minutes from one checkpoint to the next inside an epoch."""
    recalibrate_batches: Count = 20
    """Training batches used to renew the batch statistics of the latent weights, cropped as in training."""


@dataclass(frozen=True)
class Recipe:
    name: str = "custom"
    """The file's own name unless it says another; the run directory is called so."""
    data: Data = Data()
    model: Model = field(default_factory=Model)
    method: Method = field(default_factory=Method)
    loss: Loss = Loss()
    optim: Optim = Optim()
    run: Run = Run()
    first: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the other sections that are different in a stage before this one, which gives the first weights."""


SECTIONS: dict[str, type] = {"data": Data, "model": Model, "loss": Loss, "optim": Optim, "run": Run}
"""The sections with fixed keys; [method] has those of the method that it names."""
FOLDER = Path(__file__).parent


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
    hint = nearest(path.stem, names()) or ";"
    raise RecipeError(repr(name), [f"there is no such {what}{hint} `latentbit recipes list` shows all"])


def load(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of that name or path, with `key=value` overrides applied; every fault reported at once."""
    path = path_of(name)
    sections = Sections(SECTIONS, _known, others=["method", "first"])
    tables, problems = _tables(path, sections, seen=())
    overrides, faults = first.override(tables, overrides, sections)
    problems += faults
    tables["method"], others, faults = method.override(tables["method"], overrides)
    for text in others:
        problems += sections.override(tables, text, method.option_names(tables["method"]))
    problems += faults
    if not problems:
        recipe = Recipe(
            name=tables.get("name", path.stem),
            method=method.build(tables["method"]),
            first=tables.get("first", {}),
            **sections.build(tables),
        )
        problems = _contradictions(recipe)
        if recipe.first:
            problems += [f"[first]: {p}" for p in _contradictions(first_stage(recipe)) if p not in problems]
    if problems:
        raise RecipeError(path.stem if path.parent == FOLDER else str(path), problems)
    return recipe


def loads(text: str, source: str) -> Recipe:
    """The recipe that `dumps` wrote; `source` is named in errors."""
    sections = Sections(SECTIONS, _known, others=["method", "first"])
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecipeError(source, [f"not valid TOML: {error}"]) from None
    chosen, problems = _checked(tables, method.DEFAULT, text, sections)
    if problems:
        raise RecipeError(source, problems)
    return Recipe(
        name=tables.get("name", "custom"),
        method=method.build(chosen),
        first=tables.get("first", {}),
        **sections.build(tables),
    )


def first_stage(recipe: Recipe) -> Recipe:
    """What is trained before a recipe with a [first] table: the same, but for the keys that stand there."""
    sections = Sections(SECTIONS, _known)
    changed: dict[str, dict[str, Any]] = {}
    for key, value in recipe.first.items():
        section = sections.home[key]
        changed.setdefault(section, {})[key] = settle(value, sections.hints[section][key])
    parts = {name: replace(getattr(recipe, name), **keys) for name, keys in changed.items()}
    return replace(recipe, name=f"{recipe.name}_first", first={}, **parts)


def header(name: str) -> dict[str, str]:
    """The `# key: text` lines on top of a recipe file: what it is, the paper's result and ours."""
    found = {}
    for line in path_of(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        key, colon, text = line[1:].strip().partition(": ")
        if colon:
            found[key] = text
    return found


def dumps(recipe: Recipe, header: str = "") -> str:
    """TOML text that loads back to an equal recipe."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    lines.append(f"name = {schema.toml_value(recipe.name)}")
    for section, values in vars(recipe).items():
        if section == "name" or (section == "first" and not values):
            continue
        if section == "method":
            table = {"name": values.name, **values.options}
        else:
            table = values if section == "first" else vars(values)
        lines += ["", f"[{section}]"]
        lines += [f"{key} = {schema.toml_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _tables(path: Path, sections: Sections, seen: tuple[Path, ...]) -> tuple[dict[str, Any], list[str]]:
    """The tables of a file over those of the file it extends, and what is wrong in either."""
    try:
        text = path.read_text(encoding="utf-8")
        own = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8 or a number's digits
        raise RecipeError(str(path), [f"not valid TOML: {error}"]) from None
    _vouch_for_nothing(own, path)
    parent = own.pop("extends", None)
    above, above_problems = (
        ({"method": {}}, []) if parent is None else _extended(path, parent, sections, seen)
    )
    inherited = above["method"].get("name", method.DEFAULT)
    chosen, problems = _checked(own, inherited, text, sections)
    if seen:
        problems = [f"{path.name}: {problem}" for problem in problems]
    above.pop("name", None)
    above["method"] = method.merge({"name": inherited, **above["method"]}, chosen)
    _merge(above, own)
    return above, above_problems + problems


CODE = (
    ("data", "dataset"),
    ("model", "network"),
    ("model", "method"),
    ("method", "name"),
    ("loss", "latent"),
)
"""Keys that may name code of the user's own."""


def code_named(recipe: Recipe) -> dict[tuple[str, str], str]:
    """Code that a recipe names, by section and key."""
    named = {(section, key): getattr(getattr(recipe, section), key, "") for section, key in CODE}
    return {place: name for place, name in named.items() if is_import(name)}


def _vouch_for_nothing(tables: dict[str, Any], path: Path) -> None:
    """Code that a file names is looked for beside it, and imported only if the user trusts it (latentbit.imports)."""
    named = {}
    for section, key in CODE:
        table = tables.get(section)
        name = table.get(key) if isinstance(table, dict) else None
        if isinstance(name, str) and is_import(name):
            named[f"{section}.{key}"] = name
    for place, name in read_from(path, named).items():
        section, key = place.split(".")
        tables[section][key] = name


def _extended(
    path: Path, parent: str, sections: Sections, seen: tuple[Path, ...]
) -> tuple[dict[str, Any], list[str]]:
    """The tables of the file that the one at `path` extends."""
    beside = path.parent / f"{parent}.toml"
    # A copy of a recipe may extend the one of the package that bears its own name.
    near = beside.is_file() and beside.resolve() != path.resolve()
    above = beside if near else path_of(str(parent))
    if above.resolve() in (path.resolve(), *seen):
        raise RecipeError(str(path), [f"extends goes round in a circle at {parent!r}"])
    return _tables(above, sections, (*seen, path.resolve()))


def _checked(
    own: dict[str, Any], inherited: str, text: str, sections: Sections
) -> tuple[dict[str, Any], list[str]]:
    """The [method] table, taken out of those of a file, and what is wrong anywhere in the file, line by line."""
    chosen, faults = method.take(own, inherited, text)
    faults += first.faults(own.get("first", {}), text, sections)
    others = {section: table for section, table in own.items() if section != "first"}
    found = sorted(faults + sections.check(others, text), key=lambda problem: problem.line or sys.maxsize)
    return chosen, [str(problem) for problem in found]


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _known(key: str) -> list[str] | None:
    """Networks are functions of their package: looked up there, listed nowhere else."""
    if key == "network":
        from latentbit import models

        return models.names()
    return None


def _contradictions(recipe: Recipe) -> list[str]:
    """Values that are sound alone and senseless together."""
    found = []
    if recipe.loss.latent != "none" and not recipe.model.binarize:
        found.append(
            f"loss.latent = {recipe.loss.latent!r} needs latent weights, but model.binarize is false: "
            "set loss.latent = 'none' for the FP32 twin"
        )
    if recipe.loss.distribution_weight > 0 and not recipe.model.binarize:
        found.append(
            f"loss.distribution_weight = {recipe.loss.distribution_weight:g} looks at the inputs of binary layers, but "
            "model.binarize is false: drop one of them"
        )
    if recipe.loss.soft_weight > 0 and recipe.loss.latent == "none":
        found.append(
            f"loss.soft_weight = {recipe.loss.soft_weight:g} needs a latent view: set loss.latent, for example "
            "'latent_ce'"
        )
    if recipe.model.real_weights and not recipe.model.binarize:
        found.append(
            "model.real_weights is for binary activations, but model.binarize is false: drop one of them"
        )
    if recipe.data.crop_smallest > recipe.data.crop_largest:
        found.append(
            f"data.crop_smallest = {recipe.data.crop_smallest:g} is larger than "
            f"data.crop_largest = {recipe.data.crop_largest:g}"
        )
    if recipe.optim.warmup_epochs > recipe.optim.epochs:
        found.append(
            f"optim.warmup_epochs = {recipe.optim.warmup_epochs:g} is longer than "
            f"optim.epochs = {recipe.optim.epochs}"
        )
    return found
