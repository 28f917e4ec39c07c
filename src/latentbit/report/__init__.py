"""One self-contained page about one or several runs: no network, opens from disk, light and dark.

The templates, the style and the script are in templates/; numbers come from analyses alone.
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from latentbit import __version__
from latentbit.analyze import analyze_once
from latentbit.analyze.stages import Stages
from latentbit.analyze.stored import Analysis
from latentbit.atomic import atomic_write
from latentbit.figures.seeds import Group
from latentbit.report import sections, seeds
from latentbit.report.markup import Figures, render
from latentbit.report.opening import opening, title
from latentbit.report.provenance import provenance
from latentbit.runs import RunDirectory

__all__ = ["page", "report_runs", "write_report"]


def page(analyses: Sequence[Analysis], directories: Sequence[RunDirectory]) -> str:
    """The whole page as HTML."""
    figures = Figures()
    made = [make(analyses, figures) for make in sections.ALL]
    if len(analyses) > 1:
        made.insert(1, seeds.seeds(_groups(analyses, directories), figures))
    found = [section for section in made if section is not None]
    found.append(provenance(list(zip(analyses, directories, strict=True))))
    return render(
        "page.html",
        version=__version__,
        date=date.today().isoformat(),
        title=title(analyses),
        opening=opening(analyses, directories),
        sections=found,
    )


def _groups(analyses: Sequence[Analysis], directories: Sequence[RunDirectory]) -> list[Group]:
    """Runs that differ in their seed alone, under the name that their recipe has among the others."""
    groups = seeds.grouped(analyses, directories)
    first = [Analysis(runs[0].numbers | {"run": runs[0].numbers["recipe"]}, {}) for runs in groups]
    return [Group(one.name, runs) for one, runs in zip(distinct_names(first), groups, strict=True)]


def report_runs(runs: Sequence[Path], out: Path, **options: Any) -> None:
    """Analyse runs where that is not done yet and write their page; options are those of analyze_once."""
    with Stages() as stages:
        found = [analyze_once(run, stages=stages, **options) for run in runs]
        with stages.stage("drawing the report"):
            write_report(found, [RunDirectory.open(run) for run in runs], out)


def write_report(analyses: Sequence[Analysis], directories: Sequence[RunDirectory], out: Path) -> None:
    """Write the page to `out`, whole or not at all."""
    with atomic_write(out) as file:
        file.write(page(distinct_names(analyses), directories).encode())


def distinct_names(analyses: Sequence[Analysis]) -> list[Analysis]:
    """The analyses, several under the shortest names that tell them apart: what differs in loss, then in method."""
    if len(analyses) == 1:
        return list(analyses)
    losses = [str(one.numbers["loss"]) for one in analyses]
    methods = [str(one.numbers["method"]) for one in analyses]
    both = [f"{method} {loss}" for method, loss in zip(methods, losses, strict=True)]
    folders = [one.name for one in analyses]
    with_loss = [f"{loss} {folder}" for loss, folder in zip(losses, folders, strict=True)]
    candidates = (losses, methods, both, folders, with_loss, _numbered(folders))
    names = next(names for names in candidates if len(set(names)) == len(names))
    return [
        Analysis(one.numbers | {"run": name}, one.arrays) for one, name in zip(analyses, names, strict=True)
    ]


def _numbered(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return found
