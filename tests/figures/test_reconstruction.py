import pytest
import tiny_runs

from latentbit.analyze.stored import Analysis
from latentbit.figures.reconstruction import errors


@pytest.mark.parametrize("which", ["layers", "unexplained"])
def test_lines_are_the_errors_and_runs_without_any_are_left_out(which: str) -> None:
    analysis = tiny_runs.analysis()
    axes = errors([analysis, tiny_runs.float_analysis()], which).axes[0]
    assert len(axes.lines) == 1
    values = list(analysis.numbers["reconstruction"][which].values())
    assert list(axes.lines[0].get_ydata()) == values  # type: ignore[arg-type]


@pytest.mark.parametrize(("values", "scale"), [([0.5, 1.0], "linear"), ([0.005, 1.0], "log")])
def test_axis_is_logarithmic_where_errors_differ_much(values: list[float], scale: str) -> None:
    layers = {str(i): value for i, value in enumerate(values)}
    run = Analysis({"run": "x", "reconstruction": {"layers": layers}}, {})
    assert errors([run]).axes[0].get_yscale() == scale
