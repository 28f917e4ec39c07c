from pathlib import Path

import pytest
from tiny_run import tiny_recipe
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.comparison import compare as comparing


@pytest.mark.parametrize("arguments", [[], ["--quick", "--recipe", "digits_resnet18_compact"]])
def test_it_wants_a_recipe_or_quick(arguments) -> None:
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 2 and "--quick" in result.output


def test_methods_and_variants_are_two_things() -> None:
    result = CliRunner().invoke(app, ["compare", "--quick", "--methods", "sign", "--variant", "a:"])
    assert result.exit_code == 2 and "one of the two" in result.output


def test_it_compares_variants_over_seeds(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(comparing, "TIMED_ROUNDS", 1)
    tiny_recipe(tmp_path)
    line = ["--recipe", str(tmp_path / "tiny.toml"), "--seeds", "2", "--out", str(tmp_path / "out")]
    line += [
        "--variant",
        "plain:",
        "--variant",
        "decay: weight_decay=1e-5",
        "epochs=1",
        "options.widths=[4, 4]",
    ]
    result = CliRunner().invoke(app, ["compare", *line])
    assert result.exit_code == 0, result.output
    assert "paired over seeds" in result.output
    assert (tmp_path / "out" / "decay" / "seed1" / "metrics.jsonl").is_file()


def test_it_prints_a_table_and_keeps_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(comparing, "TIMED_ROUNDS", 1)
    tiny_recipe(tmp_path)
    arguments = [
        "--recipe",
        str(tmp_path / "tiny.toml"),
        "--methods",
        "sign,bnn",
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(app, ["compare", *arguments, "epochs=1", "options.widths=[4, 4]"])
    assert result.exit_code == 0, result.output
    assert "sign" in result.output and "1.00x" in result.output
    assert "| bnn |" in (tmp_path / "out" / "table.md").read_text()
    assert (tmp_path / "out" / "accuracy.png").is_file()
