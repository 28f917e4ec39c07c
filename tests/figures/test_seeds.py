"""Means over seeds, drawn: a mark and a bar for each recipe and view, a band over epochs."""

import csv
import io

import pytest
import tiny_runs

from latentbit.analyze.over_seeds import Mean
from latentbit.analyze.stored import Analysis
from latentbit.figures.drawn import as_csv
from latentbit.figures.seeds import Group, curves, means


def group() -> Group:
    one = tiny_runs.analysis()
    other = one.numbers | {"accuracy": {"B": one.numbers["accuracy"]["B"] | {"accuracy": 0.5}}}
    return Group("mine", [one, Analysis(other, one.arrays)])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_runs_mean_and_bar_are_drawn() -> None:
    found = rows(as_csv(means([group()])))
    first = 100 * tiny_runs.analysis().numbers["accuracy"]["B"]["accuracy"]
    marks = [float(row["x"]) for row in found if row["series"] == "mine B"]
    assert marks == pytest.approx([first, 50])
    bar = [float(row["x"]) for row in found if row["series"] == "B, interval"]
    mean = Mean.of([first, 50])
    assert bar == pytest.approx([mean.value - (mean.half or 0), mean.value + (mean.half or 0)])


def test_the_band_surrounds_the_mean_of_every_epoch() -> None:
    found = rows(as_csv(curves([group()], "accuracy_b", "accuracy, %")))
    line = [float(row["y"]) for row in found if row["series"] == "mine (2)"]
    history = tiny_runs.analysis().numbers["history"]
    assert line == pytest.approx([100 * entry["accuracy_b"] for entry in history if "accuracy_b" in entry])
    band = [float(row["y"]) for row in found if row["series"] == "band mine"]
    assert {round(y, 4) for y in band} == {
        round(y, 4) for y in line
    }  # the same run twice: the interval is a point
