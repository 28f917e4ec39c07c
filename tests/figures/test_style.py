import xml.etree.ElementTree as ET

from matplotlib.figure import Figure

from latentbit.figures.style import (
    GRID,
    INK,
    MUTED,
    label,
    new_figure,
    png,
    run_colour,
    run_dashes,
    run_marker,
    styled,
    svg,
)


@styled
def drawing() -> Figure:
    figure = new_figure(2.0)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], label="a < b")
    axes.set_xlabel("x")
    figure.legend(loc="outside upper left")
    return figure


def test_greys_of_an_svg_are_variables_with_their_own_fallback() -> None:
    text = svg(drawing())
    ET.fromstring(text)
    for colour in (INK, MUTED, GRID):
        assert f", {colour})" in text and f" {colour};" not in text
    assert "DejaVu" not in text and "<metadata>" not in text


def test_ids_are_apart_and_references_follow() -> None:
    text = svg(drawing(), prefix="f7", alt='rise of "a" & b')
    root = ET.fromstring(text)
    ids = [element.get("id", "f7-") for element in root.iter()]
    assert all(name.startswith("f7-") for name in ids)
    for reference in text.split("url(#")[1:]:
        assert f'id="{reference.split(")")[0]}"' in text
    assert root.get("role") == "img" and root.get("aria-label") == 'rise of "a" & b'


def test_the_same_figure_is_the_same_file() -> None:
    assert svg(drawing()) == svg(drawing())
    assert png(drawing())[:8] == b"\x89PNG\r\n\x1a\n"


def test_runs_differ_by_more_than_colour() -> None:
    looks = {(run_colour(i), run_marker(i), str(run_dashes(i))) for i in range(8)}
    assert len(looks) == 8 and len({run_marker(i) for i in range(8)}) == 8
    assert run_colour(8) == run_colour(0)


def test_long_names_lose_their_middle_and_dollars_are_no_formulas() -> None:
    assert label("short") == "short" and label("two\nlines") == "two lines"
    assert label("abcdefghij", 7) == "abc…hij" and len(label("x" * 99)) == 40
    figure = new_figure(1.0)
    figure.text(0.5, 0.5, label(r"$\frac$ 5$"))
    assert r"$\frac$ 5$" in svg(figure)


def test_names_in_any_script_stay_text_without_a_warning(recwarn) -> None:
    figure = new_figure(1)
    figure.add_subplot().set_title("猫 и 🦊 ظبي")
    assert "猫 и 🦊 ظبي" in svg(figure)
    assert [str(one.message) for one in recwarn] == []
