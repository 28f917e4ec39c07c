"""Runs that differ in their seed alone, as one row: mean and 95 % interval of the mean over seeds."""

from collections.abc import Sequence

from latentbit.analyze.over_seeds import Mean
from latentbit.analyze.stored import Analysis
from latentbit.errors import LatentbitError
from latentbit.figures import seeds as seeds_figure
from latentbit.figures.seeds import Group
from latentbit.report.markup import NOTHING, Cell, Figures, Grid, Section, render, text
from latentbit.runs import RunDirectory, changed_keys
from latentbit.runs.obtain import WORK
from latentbit.views.numbers import BY_KEY, NUMBERS


def grouped(analyses: Sequence[Analysis], directories: Sequence[RunDirectory]) -> list[list[Analysis]]:
    """The analyses, those of one recipe with other seeds together; in the order in which they were given."""
    groups: list[tuple[RunDirectory, list[Analysis]]] = []
    for analysis, directory in zip(analyses, directories, strict=True):
        mine = next((runs for other, runs in groups if _same_but_seed(other, directory)), None)
        if mine is None:
            groups.append((directory, [analysis]))
        else:
            mine.append(analysis)
    return [runs for _, runs in groups]


def _same_but_seed(first: RunDirectory, second: RunDirectory) -> bool:
    try:
        return set(changed_keys(first.recipe(), second.recipe(), WORK)) <= {"run.seed"}
    except LatentbitError:  # a recipe of another version
        return False


def seeds(groups: Sequence[Group], figures: Figures) -> Section | None:
    """Mean and interval of B, W and W-dagger; nothing if no recipe was run with several seeds."""
    if all(len(group.runs) < 2 for group in groups):
        return None
    shown = [
        one
        for one in NUMBERS
        if any(one.key in run.numbers["accuracy"] for group in groups for run in group.runs)
    ]
    rows = []
    for group in groups:
        means = [_mean(group, one.key) for one in shown]
        rows.append([text(group.name), Cell(str(len(group.runs)), float(len(group.runs))), *sum(means, [])])
    words = "; ".join(
        f"{row[0].text}: {BY_KEY[shown[0].key].name} {row[2].text} % {row[3].text}" for row in rows
    )
    headings = [heading for one in shown for heading in (f"{one.name}, mean %", "± 95 %")]
    curve = seeds_figure.curves(groups, NUMBERS[0].metric, f"test accuracy of {NUMBERS[0].name}, %")
    html = render(
        "seeds.html",
        drawing=figures.draw(
            seeds_figure.means(groups),
            f"Mean test accuracies over seeds with 95 % intervals. {words}.",
        ),
        curve=figures.draw(
            curve, "Mean test accuracy over epochs, with the 95 % interval of the mean as a band."
        ),
        grid=Grid(
            ["recipe", "seeds", *headings], rows, "Mean over seeds on the test images, and its 95 % interval"
        ),
    )
    return Section("seeds", "Seeds", html)


def _mean(group: Group, key: str) -> list[Cell]:
    values = [
        run.numbers["accuracy"][key]["accuracy"] for run in group.runs if key in run.numbers["accuracy"]
    ]
    if not values:
        return [Cell(NOTHING), Cell(NOTHING)]
    mean = Mean.of(values)
    spread = Cell(NOTHING) if mean.half is None else Cell(f"± {100 * mean.half:.2f}", mean.half)
    return [Cell(f"{100 * mean.value:.2f}", mean.value), spread]
