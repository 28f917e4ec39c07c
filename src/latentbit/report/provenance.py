"""The end of the page: how each run was made, so that a reader can make it again."""

import json
from html import escape

from latentbit.analyze.stored import Analysis
from latentbit.report.markup import Section
from latentbit.runs import RunDirectory


def provenance(runs: list[tuple[Analysis, RunDirectory]]) -> Section:
    """Recipe and environment of every run."""
    parts = []
    for analysis, directory in runs:
        recipe = (directory.path / "recipe.toml").read_text(encoding="utf-8")
        hidden = _hidden("Recipe", recipe) + _hidden("Environment", _environment(directory))
        parts.append(f"<h3>{escape(analysis.name)}</h3>{hidden}")
    return Section("provenance", "Recipe and environment", "".join(parts))


def _hidden(title: str, words: str) -> str:
    return f'<details><summary>{title}</summary><pre tabindex="0">{escape(words)}</pre></details>'


def _environment(directory: RunDirectory) -> str:
    try:
        found = json.loads((directory.path / "environment.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return "not recorded"
    width = max(map(len, found), default=0)
    return "\n".join(f"{key:<{width}}  {'-' if value is None else value}" for key, value in found.items())
