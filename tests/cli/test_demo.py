from typer.testing import CliRunner

from latentbit.cli import app


def test_help_shows_examples() -> None:
    out = CliRunner().invoke(app, ["demo", "--help"])
    assert out.exit_code == 0 and "latentbit demo --epochs 3" in out.output
