import pytest

from latentbit import cli
from latentbit.errors import LatentbitError, nearest


def test_the_command_line_prints_our_errors_as_one_line(monkeypatch, capsys) -> None:
    def fail() -> None:
        raise LatentbitError("runs/a has no recipe.toml: not a run directory")

    monkeypatch.setattr(cli, "application", lambda verbs: fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == "error: runs/a has no recipe.toml: not a run directory\n"


def test_nearest_says_nothing_about_strangers() -> None:
    assert nearest("epoch", ["epochs", "lr"]) == ", did you mean 'epochs'?"
    assert nearest("xyzzy", ["epochs", "lr"]) == ""
