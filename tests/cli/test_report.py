import shutil
from pathlib import Path

import tiny_runs
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.runs import RunError


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


def test_what_is_no_run_is_skipped_with_a_note(tmp_path: Path) -> None:
    run, begun = tmp_path / "one", tmp_path / "begun"
    shutil.copytree(tiny_runs.label_aware(), run, ignore=shutil.ignore_patterns("analysis"))
    shutil.copytree(run, begun, ignore=shutil.ignore_patterns("*.safetensors"))
    (tmp_path / "notes.txt").write_text("x")
    words = [str(path) for path in (begun, tmp_path / "notes.txt", run)]
    result = CliRunner().invoke(
        app, ["report", *words, "--samples", "20", "--device", "cpu"], catch_exceptions=False
    )
    assert result.exit_code == 0 and f"{run / 'report.html'}" in result.output
    assert f"skipping {begun} has no last.safetensors yet" in result.output
    assert f"skipping {tmp_path / 'notes.txt'} is a file, not a run directory" in result.output
    alone = CliRunner().invoke(app, ["report", str(begun)])
    assert isinstance(alone.exception, RunError) and "has no last.safetensors yet" in str(alone.exception)
    none = CliRunner().invoke(app, ["report", str(begun), str(tmp_path / "notes.txt")])
    assert isinstance(none.exception, RunError) and "none of the 2 paths is a run" in str(none.exception)
