import pytest
from typer.testing import CliRunner

import latentbit
from latentbit import _native
from latentbit.cli import app
from latentbit.engine import available


def test_info_shows_versions_and_instruction_sets() -> None:
    out = CliRunner().invoke(app, ["info"])
    assert out.exit_code == 0
    assert latentbit.__version__ in out.output
    for feature in _native.cpu_features():
        assert feature in out.output


def test_info_names_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATENTBIT_ISA", raising=False)
    assert f"engine     {available()[0]}" in CliRunner().invoke(app, ["info"]).output
    monkeypatch.setenv("LATENTBIT_ISA", "scalar")
    assert "engine     scalar (forced by LATENTBIT_ISA)" in CliRunner().invoke(app, ["info"]).output


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"latentbit {latentbit.__version__}"
