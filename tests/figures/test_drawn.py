"""What a figure shows, as numbers."""

import csv
import io

import numpy as np
import pytest
import tiny_runs

from latentbit.figures import accuracy, mistakes, training
from latentbit.figures.drawn import as_csv
from latentbit.figures.style import new_figure


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_curves_are_the_history_of_the_run() -> None:
    one = tiny_runs.analysis()
    rows = read(as_csv(training.curves([one], "loss", "loss")))
    assert [float(row["y"]) for row in rows] == pytest.approx(
        [entry["loss"] for entry in one.numbers["history"]]
    )
    assert [float(row["x"]) for row in rows] == [1, 2, 3]


def test_marks_come_with_their_intervals() -> None:
    one = tiny_runs.analysis()
    score = one.numbers["accuracy"]["B"]
    rows = read(as_csv(accuracy.accuracies([one])))
    assert 100 * score["accuracy"] == pytest.approx(float(next(r["x"] for r in rows if r["series"] == "B")))
    bar = [float(row["x"]) for row in rows if row["series"] == "B, interval"]
    assert bar == pytest.approx([100 * bound for bound in score["interval"]])


def test_a_small_matrix_is_numbers_and_a_picture_is_not() -> None:
    rows = read(as_csv(mistakes.confusion(tiny_runs.analysis())))
    assert len(rows) == 200  # right answers and wrong ones are two layers of 10 x 10
    figure = new_figure(1)
    figure.add_subplot().imshow(np.zeros((100, 100)))
    assert as_csv(figure) == ""


def test_names_are_no_formulas() -> None:
    figure = new_figure(1)
    figure.add_subplot().plot([1], [2], label='=HYPERLINK("x")')
    assert read(as_csv(figure)) == [{"panel": "1", "series": '\'=HYPERLINK("x")', "x": "1", "y": "2"}]
