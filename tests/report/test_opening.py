from pathlib import Path

import tiny_runs

from latentbit.analyze.stored import Analysis
from latentbit.report.opening import opening, title
from latentbit.runs.directory import RunDirectory


def scored(name: str, correct: int, total: int = 1000) -> Analysis:
    base = tiny_runs.analysis()
    p = correct / total
    score = {"correct": correct, "total": total, "accuracy": p, "interval": [p - 0.02, p + 0.02]}
    return Analysis(
        base.numbers | {"run": name, "accuracy": base.numbers["accuracy"] | {"B": score}}, base.arrays
    )


def told(runs: list[Analysis]) -> str:
    return opening(runs, [RunDirectory(Path("runs") / run.name) for run in runs])


def test_one_run_is_told_in_a_sentence_and_tiles() -> None:
    run = tiny_runs.analysis()
    for key in ("B", "W", "W_dagger"):
        percent = f"{100 * run.numbers['accuracy'][key]['accuracy']:.2f} %"
        sentence, _, tiles = told([run]).partition("</p>")
        assert percent in sentence and percent in tiles
    assert title([run]) == "baseline"


def test_the_best_of_several_is_named_with_those_it_cannot_be_told_from() -> None:
    # Half an interval is 2 points wide, that of a difference 2.83.
    runs = [scored("low<", 871), scored("near&", 872), scored("best", 900)]
    words = told(runs)
    assert "Best binary network: best with <strong>90.00 %</strong>" in words
    sentence, _, rest = words.partition("</p>")
    assert " (1,000 test images are too few to tell it from near&amp;)." in sentence and "low" not in sentence
    assert (
        "tiles" not in rest
        and "<dt>low&lt;</dt>" in rest
        and title(runs).startswith("3 runs: resnet18_compact on digits")
    )


def test_a_float_run_says_so() -> None:
    words = told([tiny_runs.float_analysis()])
    assert "real weights" in words and "test accuracy, real network" in words
