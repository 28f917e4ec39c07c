"""Runs of several seeds: which belong together, and their mean with its interval."""

from dataclasses import replace
from pathlib import Path

import tiny_runs
from unrendered import Unrendered

from latentbit.analyze.over_seeds import Mean
from latentbit.analyze.stored import Analysis
from latentbit.figures.seeds import Group
from latentbit.report.seeds import grouped, seeds
from latentbit.runs import RunDirectory


def test_only_the_seed_may_differ(tmp_path: Path) -> None:
    recipe, one = tiny_runs.recipe(), tiny_runs.analysis()
    chosen = [
        recipe,
        replace(recipe, run=replace(recipe.run, seed=1, eval_every=2)),
        replace(recipe, optim=replace(recipe.optim, lr=1.0)),
    ]
    directories = [RunDirectory.create(each, tmp_path / str(i)) for i, each in enumerate(chosen)]
    runs = [Analysis(one.numbers | {"run": str(i)}, {}) for i in range(3)]
    assert grouped(runs, directories) == [runs[:2], runs[2:]]


def test_the_table_has_mean_and_interval_and_needs_two_seeds() -> None:
    one = tiny_runs.analysis()
    other = Analysis(one.numbers | {"accuracy": {"B": one.numbers["accuracy"]["B"] | {"accuracy": 0.5}}}, {})
    assert seeds([Group("a", [one]), Group("b", [other])], Unrendered()) is None
    section = seeds([Group("<b>", [one, other]), Group("alone", [one])], Unrendered())
    assert section is not None and "&lt;b&gt;" in section.html and "<b>" not in section.html
    mean = Mean.of([one.numbers["accuracy"]["B"]["accuracy"], 0.5])
    assert f">{100 * mean.value:.2f}</td>" in section.html and f"± {100 * mean.half:.2f}" in section.html
