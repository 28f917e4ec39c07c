import dataclasses
from pathlib import Path

from rich.console import Console

from latentbit.comparison import standings
from latentbit.comparison.compare import Row

ROWS = [
    Row("sign", (0.5, 0.52), (0.4, 0.4), 0.1, 1.0, "nothing", 1234, 82.37, "paper"),
    Row("rbnn", (0.25,), (0.3,), 0.2, 2.0, "not packed: the mean | of a sample", None, None, ""),
    Row("cbcn", (), (), problem="no 3x3 filters"),
]


def test_several_seeds_have_mean_and_spread() -> None:
    assert standings.percent((0.5, 0.52)) == "51.00 ± 1.41"
    assert standings.percent((0.25,)) == "25.00"
    assert standings.percent(()) == "-"


def test_markdown_has_a_line_per_row() -> None:
    lines = standings.markdown(ROWS, "title", "a note").splitlines()
    assert lines[:3] == ["# title", "", "a note"]
    assert lines[6] == "| sign | 51.00 ± 1.41 | - | 40.00 ± 0.00 | 1.00x | nothing | 1.2 | 82.37 | paper |"
    assert "\\|" in lines[7] and "2.00x" in lines[7]
    assert lines[8] == "| cbcn | - | - | - | - | no 3x3 filters | - | - | - |"


def test_seeds_in_pairs_have_a_difference_with_an_interval(tmp_path: Path) -> None:
    better = dataclasses.replace(ROWS[0], contender="sign+latent", binary=(0.53, 0.56))
    rows = [ROWS[0], better]
    text = standings.markdown(rows, "title")
    assert (
        "| sign+latent | 54.50 ± 2.12 | sign: +3.50 (-2.85 to +9.85) |" in text
    )  # 3 and 4 points; t(1) = 12.71
    console = Console(width=80, record=True, file=open("/dev/null", "w"))
    console.print(standings.differences(rows))
    assert "+3.50 (-2.85 to +9.85)" in console.export_text()
    assert standings.PAIRED in text and standings.PAIRED in standings.notes(rows)
    standings.plot(rows, tmp_path / "accuracy.png", "title")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_a_method_with_the_latent_loss_is_compared_with_itself_and_others_with_the_first(
    tmp_path: Path,
) -> None:
    rows = [
        dataclasses.replace(ROWS[0], contender=name, binary=binary)
        for name, binary in {
            "sign": (0.50, 0.52),
            "bireal": (0.60, 0.62),
            "bireal+latent": (0.61, 0.63),
            "xnor+latent": (0.40, 0.42),
        }.items()
    ]
    assert [line.split(" | ")[2] for line in standings.markdown(rows, "title").splitlines()[6:]] == [
        "-",
        "sign: +10.00 (+10.00 to +10.00)",
        "bireal: +1.00 (+1.00 to +1.00)",
        "sign: -10.00 (-10.00 to -10.00)",
    ]
    console = Console(width=80, record=True, file=open("/dev/null", "w"))
    console.print(standings.differences(rows))
    assert "bireal+latent │ bireal       │" in console.export_text()
    standings.plot(rows, tmp_path / "accuracy.png", "title")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_trainings_of_different_length_are_named_as_such() -> None:
    rows = [
        dataclasses.replace(ROWS[0], epochs=15),
        dataclasses.replace(ROWS[0], contender="longer", epochs=30),
    ]
    assert "after the last of 15 epochs; mean" in standings.what_is_shown(rows[:1])
    assert "after the last epoch (sign 15, longer 30); mean" in standings.what_is_shown(rows)


def test_the_terminal_gets_numbers_and_notes() -> None:
    console = Console(width=80, record=True, quiet=False, file=open("/dev/null", "w"))
    console.print(standings.table(ROWS, "title"))
    text = console.export_text()
    assert "51.00 ± 1.41" in text and "82.37" in text
    assert standings.notes(ROWS) == [
        "sign: published 82.37, paper",
        "rbnn: not packed: the mean | of a sample",
        "cbcn: no 3x3 filters",
    ]


def test_the_figure_is_a_picture(tmp_path: Path) -> None:
    standings.plot(ROWS, tmp_path / "accuracy.png", "title")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
