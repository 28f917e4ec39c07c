import json
from pathlib import Path

from typer.testing import CliRunner

from latentbit.cli import app


def test_prints_and_writes_the_table(tmp_path: Path) -> None:
    words = ["reproduce", "complexity", "--runs", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0 and "resnet34" in result.stdout and "1.676e+09" in result.stdout
    stored = json.loads((tmp_path / "complexity.json").read_text())
    assert {line["column"] for line in stored["lines"]} == {"resnet18", "resnet34"}
    assert "| BOPs | 1.676e+09 | 1.676e+09 |" in (tmp_path / "complexity.md").read_text()
