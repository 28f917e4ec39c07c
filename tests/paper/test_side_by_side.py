from latentbit.paper.reproduce import Line, Reproduced
from latentbit.paper.side_by_side import cells, markdown, pivot, shown


def test_numbers_have_the_places_that_their_size_needs() -> None:
    assert [shown(value) for value in (82.369, 0.005412, 1.676e9, 0.0, None)] == [
        "82.37",
        "0.00541",
        "1.676e+09",
        "0.00",
        "–",
    ]
    assert cells(Line("r", "c", 82.0, 82.37)) == ["82.00", "82.37", "-0.37"]
    assert cells(Line("r", "c", 82.0, 82.37, 0.125)) == ["82.00 ± 0.12", "82.37", "-0.37"]
    assert cells(Line("r", "c", 0.0061, 0.00541)) == ["0.00610", "0.00541", "+0.00069"]
    assert cells(Line("r", "c", None, 3.5e9)) == ["–", "3.5e+09", "–"]
    assert cells(None) == ["", "", ""]


def test_markdown_has_a_row_per_row_and_names_what_is_missing() -> None:
    lines = (
        Line("a", "x", 1.5, 1.0, runs=("runs/a",)),
        Line("a", "y", None, 2.0, note="not run yet"),
        Line("b", "x", 3.0, 3.0, runs=("runs/a",)),
    )
    assert pivot(lines)[:2] == (["a", "b"], ["x", "y"])
    text = markdown(Reproduced("t", "A title", "quick", lines, epochs=8))
    assert "| a | 1.50 | 1.00 | +0.50 | – | 2.00 | – |" in text
    assert "| b | 3.00 | 3.00 | +0.00 |  |  |  |" in text
    assert "- a, y: not run yet" in text and text.endswith("Runs: `runs/a`\n") and "8 epochs" in text
