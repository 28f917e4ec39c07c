import base64
import csv
import io

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


GRID = Grid(
    ["run", "B, %"],
    [[text("=cmd()"), Cell("71.25", 0.7125)], [text("a_b & 50 %"), Cell("–")]],
    "Top-1, and more",
    [text("mean"), Cell("71.25", 0.7125)],
)


def test_tables_as_csv_have_full_numbers_and_no_formulas() -> None:
    rows = list(csv.reader(io.StringIO(GRID.csv())))
    assert rows == [["run", "B, %"], ["'=cmd()", "0.7125"], ["a_b & 50 %", "–"], ["mean", "0.7125"]]


def test_tables_as_latex_are_escaped() -> None:
    lines = GRID.latex().splitlines()
    assert lines[1:5] == [r"\begin{tabular}{lr}", r"\toprule", r"run & B, \% \\", r"\midrule"]
    assert lines[6] == r"a\_b \& 50 \% & -- \\" and lines[-1] == r"\end{tabular}"
    hostile = Grid(["x"], [[text("\\input{/etc/passwd}\n$")]], "two\nlines").latex()
    assert r"\input" not in hostile and r"\textbackslash{}input\{/etc/passwd\} \$" in hostile
    assert hostile.splitlines()[0] == "% two lines"


def test_links_hold_the_whole_file() -> None:
    (_, name, address), _ = GRID.downloads
    assert name == "top-1-and-more.csv"
    assert base64.b64decode(address.partition("base64,")[2]).decode() == GRID.csv()
    assert f'download="{name}" href="{address}"' in render_table(GRID)


def render_table(grid: Grid) -> str:
    return str(render("cost.html", grid=grid, runs=[]))
