"""recipe: files, overrides, inheritance, and faults that are told all at once."""

import dataclasses
from pathlib import Path
from typing import get_args

import pytest

from latentbit import fields, recipes
from latentbit.objective import Latent
from latentbit.projection import Kind
from latentbit.recipes import SECTIONS, Recipe, RecipeError


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def problems(*arguments: object) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        recipes.load(*arguments)  # type: ignore[arg-type]
    return caught.value.problems


def test_leaf_names_are_unique_and_documented() -> None:
    leaves = [field.name for cls in SECTIONS.values() for field in dataclasses.fields(cls)]
    assert len(set(leaves)) == len(leaves)
    assert not set(leaves) & {*SECTIONS, "method", "name", "extends"}
    for cls in (*SECTIONS.values(), recipes.Method):
        assert all(fields.docs(cls).values())


def test_choices_are_those_of_the_objective() -> None:
    hints = fields.hints(recipes.Loss)
    assert hints["latent"].__metadata__[0].words == get_args(Latent)
    assert get_args(hints["projection"]) == get_args(Kind)


def test_an_empty_file_is_the_default_recipe(tmp_path: Path) -> None:
    assert recipes.load(write(tmp_path / "a.toml", "")) == dataclasses.replace(Recipe(), name="a")


def test_overrides_with_and_without_section(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "[optim]\nepochs = 5\n[model.options]\nwidth = 1\n")
    found = recipes.load(
        path, ["epochs=2", "optim.lr=1", "flip=true", "options.width=2", "model.options.x='y'"]
    )
    assert found.optim.epochs == 2 and found.data.flip is True
    assert found.optim.lr == 1.0 and isinstance(found.optim.lr, float)
    assert found.model.options == {"width": 2, "x": "y"}


def test_dumps_loads_back_equal(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "")
    overrides = ["root='/da ta/\"x\"'", "lr=3e-7", "options={a = [1, 2.5], b = {c = true}}", "seed=7"]
    found = recipes.load(path, overrides)
    text = recipes.dumps(found, "latentbit train a\n\nsecond line")
    assert text.startswith("# latentbit train a\n#\n# second line\nname = ")
    assert recipes.load(write(tmp_path / "other.toml", text)) == found


def test_extends_goes_under_what_the_file_says(tmp_path: Path) -> None:
    write(tmp_path / "top.toml", "[optim]\nlr = 1.0\nepochs = 9\n[model.options]\na = 1\nb = 1\n")
    write(tmp_path / "mid.toml", "extends = 'top'\n[optim]\nepochs = 8\n")
    path = write(tmp_path / "low.toml", "extends = 'mid'\n[model.options]\nb = 2\n")
    found = recipes.load(path)
    assert (found.name, found.optim.lr, found.optim.epochs) == ("low", 1.0, 8)
    assert found.model.options == {"a": 1, "b": 2}


def test_extends_in_a_circle_or_into_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.toml", "extends = 'b'\n")
    path = write(tmp_path / "b.toml", "extends = 'a'\n")
    assert "circle" in problems(path)[0]
    assert "no such recipe" in problems(write(tmp_path / "c.toml", "extends = 'nothing'"))[0]


def test_a_copy_may_extend_its_namesake(tmp_path: Path) -> None:
    name = "cifar10_resnet20"
    path = write(tmp_path / f"{name}.toml", f"extends = '{name}'\n[optim]\nepochs = 3\n")
    found = recipes.load(path)
    assert (found.model.network, found.optim.epochs) == ("resnet20", 3)


def test_all_faults_at_once_with_line_and_nearest_key(tmp_path: Path) -> None:
    text = """epochs = 3
[optm]
[optim]
epoch = 3
lr = "fast"
batch_size = 2
[data]
dataset = "cifar"
pad = -1
[model]
method = "sigm"
network = "resnet18_compakt"
binarize = 0
"""
    found = problems(write(tmp_path / "a.toml", text), ["epoch=2", "foo", "latent=label_awar", "warmup=1"])
    expected = [
        "line 1: epochs: is not a section, it belongs in [optim]",
        "line 2: optm: unknown section, did you mean 'optim'?",
        "line 4: optim.epoch: unknown key, did you mean 'epochs'?",
        "line 5: optim.lr: 'fast' is not a number",
        "line 6: optim.batch_size: unknown key here, it belongs in [data]",
        "line 8: data.dataset: 'cifar' is not one of",
        "line 9: data.pad: -1 is out of range, it must be at least 0",
        "line 11: model.method: no method 'sigm', did you mean 'sign'?",
        "line 12: model.network: no network 'resnet18_compakt', did you mean 'resnet18_compact'?",
        "line 13: model.binarize: 0 is not true or false",
        "override 'epoch=2': unknown key, did you mean 'epochs'?",
        "override 'foo': write it as key=value",
        "override 'latent=label_awar': 'label_awar' is not one of",
        "override 'warmup=1': unknown key, did you mean 'warmup_epochs'?",
    ]
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


def test_faults_of_a_parent_name_its_file(tmp_path: Path) -> None:
    write(tmp_path / "top.toml", "[optim]\nlr = -1.0\n")
    found = problems(write(tmp_path / "low.toml", "extends = 'top'\n[optim]\nepochs = 0\n"))
    assert found[0].startswith("top.toml: line 2: optim.lr") and found[1].startswith("line 3: optim.epochs")


@pytest.mark.parametrize(
    "overrides",
    [
        ["binarize=false", "latent=instance"],
        ["epochs=1", "warmup_epochs=2"],
        ["latent=none", "binarize=false", "real_weights=true"],
        ["latent=none", "binarize=false", "distribution_weight=2"],
    ],
)
def test_contradictions(tmp_path: Path, overrides: list[str]) -> None:
    assert len(problems(write(tmp_path / "a.toml", ""), overrides)) == 1


def test_unknown_recipe_and_broken_toml(tmp_path: Path) -> None:
    assert "did you mean 'cifar10_resnet18_compact'" in problems("cifar10_resnet18_compct")[0]
    assert "no such recipe file" in problems(str(tmp_path / "x.toml"))[0]
    assert "not valid TOML" in problems(write(tmp_path / "a.toml", "a = = 1"))[0]
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    assert "not valid TOML" in problems(str(tmp_path / "b.toml"))[0]


def test_overrides_over_broken_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "data = 3\n[model]\noptions = 4\n")
    found = problems(path, ["pad=1", "options.x=1", "data.pad.x=1", "optim.lr.x=1"])
    assert found[0].startswith("line 1: data: is a section")
    assert found[1].startswith("line 3: model.options: 4 is not a table")
    assert found[2].startswith("override 'optim.lr.x=1': unknown key") and len(found) == 3


SCREENING = "cifar10_16px"  # none of the paper's: called after its images


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_of_the_package(name: str, tmp_path: Path) -> None:
    found = recipes.load(name)
    assert found.name == name
    assert recipes.load(write(tmp_path / "copy.toml", recipes.dumps(found))) == found
    first = recipes.path_of(name).read_text().splitlines()[0]
    assert first.startswith("# ") and f"latentbit train {name}" in first
    assert set(recipes.header(name)) == {"what", "paper", "here"}
    data, network = found.data.dataset.replace("image_folder", "imagenet"), found.model.network
    if name != SCREENING:
        assert name.startswith((f"{data}_{network}", f"{data}_{network.removesuffix('_standard')}"))


def test_the_papers_settings() -> None:
    names = recipes.names()
    assert len(names) > 30
    for name in names:
        found = recipes.load(name)
        if found.method.name != "sign":
            # Published settings of another method: the recipe is called after it.
            assert found.method.name in name or "real_to_binary" in name  # a network with the rule of bnn
            assert found.loss.latent == "none"
            continue
        if name.startswith("cifar") and not name.endswith("_quick") and name != SCREENING:
            assert (found.optim.lr, found.optim.weight_decay, found.optim.epochs) == (5e-3, 1e-6, 300)
            mirrored = (
                name == "cifar10_resnet18_compact"
            )  # ours, for long trainings; the paper's is the _baseline
            assert (found.data.batch_size, found.data.pad, found.data.flip, found.loss.dim) == (
                128,
                2,
                mirrored,
                32,
            )
        if name.startswith("imagenet") and "standard" not in name:
            assert (found.optim.lr, found.optim.weight_decay, found.optim.epochs) == (1e-3, 0.0, 120)
            assert (found.data.image_size, found.data.resize, found.data.flip) == (224, 256, True)
            assert found.loss.dim == 128
        assert bool(found.loss.teacher) is name.endswith("_kd")
        assert found.model.binarize is not name.endswith(("_fp32", "_standard"))


def test_the_settings_of_releases() -> None:
    """What the first lines of recipes claim: batch, lr, weight decay, epochs, plain momentum, network."""
    settings = {
        "irnet": (128, 0.1, 1e-4, 400, 0.0, "hardtanh", "subsample", 1.0),
        "rbnn": (256, 0.1, 1e-4, 1000, 5.0, "hardtanh", "subsample", 1e-8),
        "recu": (256, 0.1, 5e-4, 600, 5.0, "hardtanh", "average", 1.0),
        "adabin": (128, 0.1, 1e-4, 400, 0.0, "maxout", "subsample", 1.0),
    }
    for method, (batch, lr, decay, epochs, warmup, activation, shortcut, gamma) in settings.items():
        found = recipes.load(f"cifar10_resnet20_{method}")
        optim, options = found.optim, found.model.options
        assert (found.data.batch_size, found.data.pad, found.data.flip) == (batch, 4, True)
        assert (optim.lr, optim.weight_decay, optim.epochs, optim.warmup_epochs) == (
            lr,
            decay,
            epochs,
            warmup,
        )
        assert optim.optimizer == "sgd" and optim.momentum == 0.9 and not optim.nesterov
        assert options["activation"] == options["stem"] == activation and options["shortcut"] == shortcut
        assert options["norm"] == "after" and options["head_norm"] and options["init"] == "fan_in"
        assert options.get("gamma", 1.0) == gamma
    for name in ("imagenet_resnet18_bireal", "imagenet_resnet18_reactnet", "imagenet_reactnet_a"):
        found = recipes.load(name)
        assert (found.data.crop, found.data.crop_smallest, found.optim.schedule) == (
            "random_resized",
            0.08,
            "linear",
        )


def test_the_paper_has_recipes_of_its_own_that_the_default_does_not_change() -> None:
    default, printed, baseline = (
        recipes.load(f"cifar10_resnet18_compact{form}") for form in ("", "_label_aware", "_baseline")
    )
    assert printed.loss.latent == "label_aware" and printed.loss.latent_weight == 1e-4
    assert default.loss.latent == baseline.loss.latent == "none"
    assert (printed.data, printed.model, printed.optim) == (baseline.data, baseline.model, baseline.optim)
