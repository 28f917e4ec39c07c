import tiny_runs

from latentbit.analyze.stored import Analysis
from latentbit.analyze.tables import tables


def _lines(title: str, *runs: Analysis) -> list[tuple[object, ...]]:
    (table,) = [table for table in tables(runs) if title in str(table.title)]
    return list(zip(*([column.header, *column.cells] for column in table.columns), strict=True))


def test_a_real_run_has_no_w() -> None:
    both, single = tiny_runs.analysis(), tiny_runs.float_analysis()
    head, first, second = _lines("accuracy on the 360 test images, %", both, single)
    assert head == ("run", "epoch", "B", "W", "W†")
    scores = both.numbers["accuracy"]
    assert first[:2] == (both.name, "3 of 3, the last")
    assert first[2:] == tuple(f"{100 * scores[key]['accuracy']:.2f}" for key in ("B", "W", "W_dagger"))
    assert second[0] == single.name and second[3:] == ("", "")


def test_views_are_called_by_their_names() -> None:
    rows = _lines("penultimate features", tiny_runs.analysis())
    assert [row[1] for row in rows] == ["view", "B", "W†"]


def test_tables_without_rows_are_left_out() -> None:
    assert len(tables([tiny_runs.analysis()])) == 3
    assert len(tables([tiny_runs.float_analysis()])) == 2
