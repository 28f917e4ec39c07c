import shutil
from pathlib import Path

import tiny_runs
from typer.testing import CliRunner

from latentbit.cli import app


def test_writes_one_file_and_says_where(tmp_path: Path) -> None:
    run = tmp_path / "one"
    shutil.copytree(tiny_runs.label_aware(), run, ignore=shutil.ignore_patterns("analysis"))
    words = ["report", str(run), "--samples", "20", "--device", "cpu"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0 and "report.html" in result.stdout
    page = (run / "report.html").read_text()
    assert (
        page.startswith("<!doctype html>")
        and "Feature maps" in page
        and "$" not in page.partition("<script>")[0]
    )
