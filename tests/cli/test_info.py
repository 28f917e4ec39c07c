from typer.testing import CliRunner

import latentbit
from latentbit import _native
from latentbit.cli import app


def test_info_shows_versions_and_instruction_sets() -> None:
    out = CliRunner().invoke(app, ["info"])
    assert out.exit_code == 0
    assert latentbit.__version__ in out.output
    for feature in _native.cpu_features():
        assert feature in out.output


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"latentbit {latentbit.__version__}"
