import tiny_runs

from latentbit.figures.mistakes import confusion, contact_sheet


def test_cells_show_the_counts() -> None:
    analysis = tiny_runs.analysis()
    axes = confusion(analysis).axes[0]
    matrix = analysis.numbers["mistakes"]["confusion"]
    shown = {text.get_position()[::-1]: int(text.get_text()) for text in axes.texts}
    assert shown == {(i, j): n for i, row in enumerate(matrix) for j, n in enumerate(row) if n}


def test_the_sheet_says_what_was_wrong() -> None:
    analysis = tiny_runs.analysis()
    worst = analysis.numbers["mistakes"]["worst"]
    axes = contact_sheet(analysis, limit=8).axes[0]
    assert len(axes.images) == min(8, len(worst))
    assert axes.texts[0].get_text() == str(worst[0]["label"])
    assert axes.texts[1].get_text() == f"→ {worst[0]['predicted']}\n{100 * worst[0]['probability']:.0f} %"
