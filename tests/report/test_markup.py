from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Cell, Grid, look_up, number, render, text

RUN = Analysis({"run": "r", "a": {"b": [0.25, {"c.d": 1e6}]}, "none": None}, {})


def test_numbers_keep_their_value_and_place() -> None:
    assert number(RUN, "a/b/0", "{:.1f}", 100, " %") == Cell("25.0 %", 0.25, "r/a/b/0")
    assert number(RUN, "a/b/1/c.d", "{:,.0f}").text == "1,000,000"
    assert number(RUN, "none").value is None and number(RUN, "a/x").text == "–"
    assert look_up(RUN.numbers, "a/b/7") is None


def test_table_escapes_and_marks_numbers() -> None:
    rows = [[text("a & b"), number(RUN, "a/b/0")]]
    grid = Grid(["<name>", "n"], rows, 'what "x"', [text("sum"), Cell("1", small=True)])
    html = render("cost.html", grid=grid, runs=[])
    assert "&lt;name&gt;" in html and "a &amp; b" in html and 'aria-label="what &#34;x&#34;"' in html
    assert '<td data-value="0.25" data-key="r/a/b/0">0.25</td>' in html
    assert html.count('class="text"') == 3  # heading, cell and foot of the first column
    assert "<tfoot>" in html and "<small>1</small>" in html and 'role="region"' in html
