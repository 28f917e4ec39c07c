"""The end of the page: how each run was made, so that a reader can make it again."""

import json

from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Section, render
from latentbit.runs import RunDirectory


def provenance(runs: list[tuple[Analysis, RunDirectory]]) -> Section:
    """Recipe and environment of every run."""
    shown = [
        {
            "name": analysis.name,
            "recipe": (directory.path / "recipe.toml").read_text(encoding="utf-8"),
            "environment": _environment(directory),
        }
        for analysis, directory in runs
    ]
    return Section("provenance", "Recipe and environment", render("provenance.html", runs=shown))


def _environment(directory: RunDirectory) -> str:
    try:
        found = json.loads((directory.path / "environment.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return "not recorded"
    width = max(map(len, found), default=0)
    return "\n".join(f"{key:<{width}}  {'-' if value is None else value}" for key, value in found.items())
