import json
import math
import tomllib
from pathlib import Path

import pytest
import torch
from tiny_run import tiny_recipe

from latentbit import methods, models
from latentbit.comparison import compare
from latentbit.comparison.compare import ComparisonError, Contender, contenders, recipe_of
from latentbit.methods import UnknownMethod
from latentbit.methods.parts.binarizer import Unsuitable
from latentbit.runs import RunError
from latentbit.training import jobs

SMALL = ["options.widths=[4, 4]", "epochs=1"]


@pytest.fixture(autouse=True)
def _one_round(monkeypatch) -> None:
    monkeypatch.setattr(compare, "TIMED_ROUNDS", 1)


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    tiny_recipe(tmp_path)
    return str(tmp_path / "tiny.toml")


def test_contenders_are_methods_with_or_without_the_latent_loss() -> None:
    assert contenders("sign, irnet+latent,sign") == [Contender("sign", False), Contender("irnet", True)]
    assert {str(c) for c in contenders("all")} == {n + s for n in methods.names() for s in ("", "+latent")}
    with pytest.raises(UnknownMethod, match="did you mean 'irnet'"):
        contenders("ir_net")
    with pytest.raises(ComparisonError):
        contenders(" ,")


def test_variants_change_what_they_name(tiny) -> None:
    plain, decay = compare.variants(["plain:", "decay: weight_decay=1e-5 'method.name=\"sign\"'"])
    assert (str(plain), plain.changes) == ("plain", ()) and decay.changes[0] == "weight_decay=1e-5"
    assert recipe_of(tiny, SMALL, decay, 1).optim.weight_decay == 1e-5
    assert recipe_of(tiny, SMALL, plain, 1).loss == recipe_of(tiny, SMALL, decay, 1).loss
    for wrong in (["no colon"], [": lr=1"], ["a/b: lr=1"], ["a:", "a: lr=1"]):
        with pytest.raises(ComparisonError, match="--variant"):
            compare.variants(wrong)


def test_only_method_latent_loss_and_seed_differ_between_recipes(tiny) -> None:
    plain = recipe_of(tiny, SMALL, Contender("irnet", False), 2)
    assert (plain.method.name, plain.loss.latent, plain.run.seed) == ("irnet", "none", 2)
    with_latent = recipe_of(tiny, [*SMALL, "latent=instance"], Contender("sign", True), 2)
    assert with_latent.loss.latent == "instance"
    assert recipe_of(tiny, ["latent=none"], Contender("sign", True), 0).loss.latent == "label_aware"
    assert plain.optim == with_latent.optim and plain.data == with_latent.data


def test_without_the_latent_loss_of_joint_training_b_does_not_learn_from_w(tiny) -> None:
    joint = [*SMALL, "latent=latent_ce", "soft_weight=0.3"]
    assert recipe_of(tiny, joint, Contender("sign", False), 0).loss.soft_weight == 0
    assert recipe_of(tiny, joint, Contender("sign", True), 0).loss.soft_weight == 0.3


def test_rows_tell_accuracy_time_and_what_is_left(tiny, tmp_path, monkeypatch) -> None:
    chosen = contenders("sign,reactnet+latent,cibnn,cbcn")
    monkeypatch.setattr(jobs, "train", refusing(jobs.train, "cbcn"))
    rows = compare.compare(chosen, tiny, SMALL, seeds=2, out=tmp_path / "out")
    assert [row.contender for row in rows] == ["sign", "reactnet+latent", "cibnn", "cbcn"]
    for row in rows[:3]:
        assert len(row.binary) == len(row.latent) == 2 and all(0 <= a <= 1 for a in row.binary)
        assert row.step_seconds > 0 and row.problem == ""
    assert rows[0].step_ratio == 1
    assert rows[0].inference == "nothing" and rows[0].packed_bytes is not None
    assert rows[1].inference == "a threshold per input channel"
    assert rows[1].packed_bytes is not None and rows[1].packed_bytes >= rows[0].packed_bytes
    assert "corrections between the output channels" in rows[2].inference and rows[2].packed_bytes is None
    assert rows[3].problem == "no 3x3 filters" and math.isnan(rows[3].step_ratio)
    assert [r["contender"] for r in json.loads((tmp_path / "out" / "rows.json").read_text())] == [
        row.contender for row in rows
    ]

    # What is trained stays trained, and another recipe does not pass for it.
    monkeypatch.setattr(jobs, "train", refusing(jobs.train, "sign"))
    again = compare.compare(chosen[:1], tiny, SMALL, seeds=2, out=tmp_path / "out")
    assert again[0].binary == rows[0].binary
    with pytest.raises(RunError, match=r"another recipe \(optim.lr differ\)"):
        compare.compare(chosen[:1], tiny, [*SMALL, "lr=1e-3"], out=tmp_path / "out")


@pytest.mark.parametrize("wanted", ["on", "off"])
def test_a_step_is_timed_as_the_training_runs_it(tiny, monkeypatch, wanted) -> None:
    """Uncompiled times said of joint training that a step takes 1.8 times as long, where trainings took 2.6 times."""
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda module: compiled.append(module) or module)
    sign = Contender("sign", False)
    compare.step_seconds({sign: recipe_of(tiny, [*SMALL, f"compile={wanted}"], sign, 0)})
    assert len(compiled) == (wanted == "on")


def refusing(train, method: str):
    """train, but for a method that does not suit the network."""

    def trains(recipe, **options):
        if recipe.method.name == method:
            raise Unsuitable("no 3x3 filters")
        return train(recipe, **options)

    return trains


def test_a_stopped_comparison_goes_on(tiny, tmp_path, monkeypatch) -> None:
    from latentbit.training.interrupt import Interrupt

    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "name", "SIGINT", raising=False)
        patch.setattr(Interrupt, "wanted", lambda self, device: True)
        with pytest.raises(ComparisonError, match="stopped; the same command continues"):
            compare.compare(contenders("sign"), tiny, SMALL, out=tmp_path / "out")
    rows = compare.compare(contenders("sign"), tiny, SMALL, out=tmp_path / "out")
    assert len(rows[0].binary) == 1


def test_published_numbers_are_of_methods_and_networks_that_exist() -> None:
    table = tomllib.loads(compare.PUBLISHED.read_text())
    for dataset, networks in table.items():
        assert dataset in ("cifar10", "cifar100", "imagenet")
        for network, results in networks.items():
            assert network in models.names()
            for name, (accuracy, source) in results.items():
                contenders(name)
                assert 10 < accuracy < 100 and source
    recipe = recipe_of("cifar10_resnet20", [], Contender("irnet", False), 0)
    assert compare.published(recipe, Contender("irnet", False))[0] == 86.5
    assert compare.published(recipe, Contender("irnet", True)) == (None, "")
