import tiny_runs

from latentbit.figures.accuracy import accuracies


def test_a_mark_for_each_view_of_each_run() -> None:
    both, single = tiny_runs.analysis(), tiny_runs.float_analysis()
    axes = accuracies([both, single]).axes[0]
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() in ("o", "X", "D")]
    expected = [100 * one["accuracy"] for run in (both, single) for one in run.numbers["accuracy"].values()]
    assert [float(x[0]) for x in marks] == expected  # type: ignore[index]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["baseline", "float"]
