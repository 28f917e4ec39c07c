import tiny_runs

from latentbit.figures.training import accuracy_curves, curves


def test_one_run_shows_its_views_and_several_show_b() -> None:
    one, other = tiny_runs.analysis(), tiny_runs.float_analysis()
    alone = accuracy_curves([one]).axes[0].lines
    assert [line.get_label() for line in alone] == ["B", "W", "W†", "B, training"]
    together = accuracy_curves([one, other]).axes[0].lines
    assert [line.get_label() for line in together] == ["baseline", "float"]
    logged = [100 * entry["accuracy_b"] for entry in one.numbers["history"]]
    assert list(together[0].get_ydata()) == list(alone[0].get_ydata()) == logged  # type: ignore[arg-type]


def test_a_metric_that_a_run_has_not_is_left_out() -> None:
    figure = curves([tiny_runs.analysis(), tiny_runs.float_analysis()], "accuracy_w", "W", percent=True)
    assert [line.get_label() for line in figure.axes[0].lines] == ["baseline"]
    assert figure.axes[0].get_ylabel() == "W, %"
