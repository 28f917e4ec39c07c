"""The [method] table: options that depend on the name, in files, overrides and what extends them."""

import sys
from pathlib import Path

import pytest
from recipes.test_recipe import problems, write

from latentbit import recipes
from latentbit.recipes import Method

IRNET = {"t_min": 1e-3, "t_max": 10.0}


def load(folder: Path, text: str, *overrides: str) -> Method:
    return recipes.load(write(folder / "a.toml", text), overrides).method


def test_a_table_with_options_and_every_default_written_out(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Method("sign", {})
    assert load(tmp_path, "[method]\nname = 'irnet'\nt_min = 1\n") == Method("irnet", {**IRNET, "t_min": 1.0})
    found = recipes.load(str(tmp_path / "a.toml"))
    text = recipes.dumps(found)
    assert '[method]\nname = "irnet"\nt_min = 1.0\nt_max = 10.0\n' in text
    assert recipes.load(write(tmp_path / "b.toml", text)).method == found.method
    assert recipes.loads(text, "here") == found
    line = text.splitlines().index("t_min = 1.0") + 1
    expected = (
        f"1 problem in recipe here:\n  - line {line}: method.t_mim: method irnet has no such option, did you"
    )
    with pytest.raises(recipes.RecipeError, match=expected):
        recipes.loads(text.replace("t_min =", "t_mim ="), "here")


def test_recipes_of_0_1_name_the_method_in_their_model_section(tmp_path: Path) -> None:
    old = "[model]\nnetwork = 'resnet20'\nmethod = 'irnet'\n"
    assert load(tmp_path, old) == Method("irnet", IRNET)
    assert load(tmp_path, old, "method.t_min=0.1").options["t_min"] == 0.1
    assert load(tmp_path, old, "model.method=bnn") == Method("bnn", {})
    load(tmp_path, "[method]\nname = 'irnet'\nt_min = 0.1\n")
    low = write(tmp_path / "low.toml", "extends = 'a'\n[model]\nmethod = 'bnn'\n")
    assert recipes.load(low).method == Method("bnn", {})


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=irnet", "method.t_min=0.1"],
        ["method.t_min=0.1", "method=irnet"],
        ["method.name=irnet", "method.t_min=0.1"],
    ],
)
def test_overrides_set_name_and_options_in_any_order(tmp_path: Path, overrides: list[str]) -> None:
    found = load(tmp_path, "[method]\nname = 'bop'\ngamma = 0.5\n", *overrides)
    assert found == Method("irnet", {**IRNET, "t_min": 0.1})


def test_another_name_drops_the_options_and_the_same_name_keeps_them(tmp_path: Path) -> None:
    top = "[method]\nname = 'irnet'\nt_min = 0.1\n"
    assert load(tmp_path, top, "method=rbnn").options == {"t_min": 1e-2, "t_max": 10.0, "rounds": 3}
    assert load(tmp_path, top, "method=irnet").options["t_min"] == 0.1
    write(tmp_path / "top.toml", top)
    write(tmp_path / "same.toml", "extends = 'top'\n[method]\nt_max = 5.0\n")
    write(tmp_path / "again.toml", "extends = 'top'\n[method]\nname = 'irnet'\nt_max = 5.0\n")
    other = write(tmp_path / "other.toml", "extends = 'same'\n[method]\nname = 'rbnn'\nrounds = 4\n")
    for name in ("same", "again"):
        found = recipes.load(str(tmp_path / f"{name}.toml")).method
        assert found == Method("irnet", {"t_min": 0.1, "t_max": 5.0})
    assert recipes.load(other).method.options == {"t_min": 1e-2, "t_max": 10.0, "rounds": 4}


def test_faults_come_with_line_bounds_and_nearest_name(tmp_path: Path) -> None:
    text = "[method]\nname = 'irnet'\nt_mim = 0.1\nt_max = -1\ngamma = 2\n[optim]\nlr = 0\n"
    assert problems(write(tmp_path / "a.toml", text)) == [
        "line 3: method.t_mim: method irnet has no such option, did you mean 't_min'? "
        "its options: t_min, t_max",
        "line 4: method.t_max: -1 is out of range, it must be at least 1e-06",
        "line 5: method.gamma: method irnet has no such option; its options: t_min, t_max",
        "line 7: optim.lr: 0 is out of range, it must be at least 1e-30",
    ]
    assert problems(write(tmp_path / "a.toml", "[method]\nt_min = 1.0\n")) == [
        "line 2: method.t_min: method sign has no such option; it has none"
    ]
    assert problems(write(tmp_path / "a.toml", "[method]\nname = 'cbcn'\norientations = 3\n")) == [
        "line 3: method.orientations: 3 is not one of 2, 4, 8"
    ]


def test_faults_of_the_name_and_of_the_shape(tmp_path: Path) -> None:
    (found,) = problems(write(tmp_path / "a.toml", "[method]\nname = 'irnt'\nt_min = 1.0\n"))
    assert found.startswith("line 2: method.name: no method 'irnt', did you mean 'irnet'? (")
    assert problems(write(tmp_path / "a.toml", "[method]\nname = 3\n"), ["method.x=1"]) == [
        "line 2: method.name: 3 is not a string"
    ]
    assert problems(write(tmp_path / "a.toml", "method = 'irnet'\n"), ["lr=1"]) == [
        "line 1: method: is a section, write it as a table"
    ]
    both = "[model]\nmethod = 'irnet'\n[method]\nname = 'irnet'\n"
    assert problems(write(tmp_path / "a.toml", both)) == [
        "line 2: model.method: [method] has a name already, remove this one"
    ]
    assert problems(write(tmp_path / "a.toml", "[metod]\nname = 'irnet'\n")) == [
        "line 1: metod: unknown section, did you mean 'method'?"
    ]


def test_faults_of_overrides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "[method]\nname = 'irnet'\n")
    assert problems(path, ["method.t_min=low", "method.rounds=3", "t_min=0.1", "method.t_max"]) == [
        "override 't_min=0.1': unknown key, did you mean 'method.t_min'?",
        "override 'method.t_min=low': 'low' is not a number",
        "override 'method.rounds=3': method irnet has no such option; its options: t_min, t_max",
        "override 'method.t_max': write it as key=value",
    ]
    (found,) = problems(path, ["method=irnt", "method.t_min=0.1"])
    assert found.startswith("override 'method=irnt': no method 'irnt', did you mean 'irnet'? (")


def test_a_class_of_the_users_own_is_named_but_not_imported(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lb_theirs.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    text = "[method]\nname = 'lb_theirs:Mine'\ngain = 2\n[model]\nnetwork = 'lb_theirs:net'\n"
    text += "[loss]\nlatent = 'lb_theirs:loss'\n"
    found = recipes.load(write(tmp_path / "a.toml", text), ["method.mode=fast", "method.deep=true"])
    assert found.method == Method("lb_theirs:Mine", {"gain": 2, "mode": "fast", "deep": True})
    assert (found.model.network, found.loss.latent) == ("lb_theirs:net", "lb_theirs:loss")
    assert recipes.load(write(tmp_path / "b.toml", recipes.dumps(found))) == found
    assert "lb_theirs" not in sys.modules


def test_the_methods_of_recipes_that_extend_others() -> None:
    assert recipes.load("cifar10_vgg_small_bop").method == Method(
        "bop", {"gamma": 1e-4, "gamma_parts": 5, "tau": 1e-8}
    )
    assert recipes.load("cifar10_resnet20_recu").method == Method("recu", {"tau_min": 0.85, "tau_max": 0.99})
    assert recipes.load("imagenet_resnet18_reactnet").method == Method("reactnet", {})
