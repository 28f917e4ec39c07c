from pathlib import Path

import tiny_runs

from latentbit.report.provenance import provenance
from latentbit.runs import RunDirectory


def test_recipe_and_environment_are_shown() -> None:
    html = provenance([(tiny_runs.analysis(), RunDirectory(tiny_runs.baseline()))]).html
    assert "network = &#34;resnet18_compact&#34;" in html and "torch" in html


def test_a_run_copied_without_its_environment_still_reports(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("# <mine>\n")
    html = provenance([(tiny_runs.analysis(), RunDirectory(tmp_path))]).html
    assert "&lt;mine&gt;" in html and "not recorded" in html
