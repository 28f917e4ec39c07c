from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Cell, look_up, number, table, text

RUN = Analysis({"run": "r", "a": {"b": [0.25, {"c.d": 1e6}]}, "none": None}, {})


def test_numbers_keep_their_value_and_place() -> None:
    assert number(RUN, "a/b/0", "{:.1f}", 100, " %") == Cell("25.0 %", 0.25, "r/a/b/0")
    assert number(RUN, "a/b/1/c.d", "{:,.0f}").html == "1,000,000"
    assert number(RUN, "none").value is None and number(RUN, "a/x").html == "&ndash;"
    assert look_up(RUN.numbers, "a/b/7") is None


def test_table_escapes_and_marks_numbers() -> None:
    html = table(["<name>", "n"], [[text("a & b"), number(RUN, "a/b/0")]], "what", [text("sum"), Cell("1")])
    assert "&lt;name&gt;" in html and "a &amp; b" in html
    assert '<td data-value="0.25" data-key="r/a/b/0">0.25</td>' in html
    assert html.count('class="text"') == 3  # heading, cell and foot of the first column
    assert "<tfoot>" in html and 'role="region"' in html
