"""Our numbers beside the paper's, as the cells of a table and as Markdown."""

from collections.abc import Sequence

from latentbit.paper.reproduce import OURS, Line, Reproduced


def pivot(lines: Sequence[Line]) -> tuple[list[str], list[str], dict[tuple[str, str], Line]]:
    """Rows and columns in order of appearance, and the line at each crossing."""
    rows = list(dict.fromkeys(line.row for line in lines))
    columns = list(dict.fromkeys(line.column for line in lines))
    return rows, columns, {(line.row, line.column): line for line in lines}


def shown(value: float | None, signed: bool = False) -> str:
    """A number as tables print it: more places for small ones, powers of ten for counts."""
    if value is None:
        return "–"
    size = abs(value)
    form = ".4g" if size >= 1e5 else ".2f" if size >= 0.5 or value == 0 else ".5f"
    return f"{value:{'+' if signed else ''}{form}}"


def cells(line: Line | None) -> list[str]:
    """Ours, the paper's, the difference."""
    if line is None:
        return ["", "", ""]
    # The difference is printed with the places of the numbers it is between.
    small = abs(line.paper) < 0.5
    difference = line.difference
    apart = (
        "–"
        if difference is None
        else f"{difference:+.5f}"
        if small
        else f"{difference:+.4g}"
        if abs(line.paper) >= 1e5
        else f"{difference:+.2f}"
    )
    spread = f" ± {line.spread:.2f}" if line.spread is not None and not small else ""
    return [shown(line.ours) + spread, shown(line.paper), apart]


def markdown(found: Reproduced) -> str:
    """The table as Markdown, with what was scaled down and which runs it is from."""
    rows, columns, at = pivot(found.lines)
    head = ["", *(f"{column}{what}" for column in columns for what in (" ours", " paper", " diff"))]
    lines = [f"# {found.title}", "", f"Scale: {found.scale}, {found.scaled_down or 'as in the paper'}.", ""]
    if any(line.runs for line in found.lines):
        lines[2] += f" {OURS.capitalize()}."
    lines += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        parts = [part for column in columns for part in cells(at.get((row, column)))]
        lines.append("| " + " | ".join([row, *parts]) + " |")
    notes = {f"{line.row}, {line.column}: {line.note}" for line in found.lines if line.note}
    used = dict.fromkeys(run for line in found.lines for run in line.runs)
    lines += ["", *(f"- {note}" for note in sorted(notes))] if notes else []
    lines += ["", "Runs: " + ", ".join(f"`{run}`" for run in used)] if used else []
    return "\n".join(lines) + "\n"
