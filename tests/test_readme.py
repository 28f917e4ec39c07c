"""What the README shows is run: Python as it stands, commands as far as their verbs and recipes go."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latentbit import recipes
from latentbit.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^    .*?\blatentbit ([a-z]+)(.*)$", README, re.MULTILINE)


def test_there_is_something_to_run() -> None:
    assert len(SNIPPETS) >= 2 and len(COMMANDS) >= 5


@pytest.mark.parametrize("code", SNIPPETS)
def test_python_runs_as_it_stands(code, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("verb", sorted({verb for verb, _ in COMMANDS}))
def test_verbs_exist_and_explain_themselves(verb) -> None:
    out = CliRunner().invoke(app, [verb, "--help"])
    assert out.exit_code == 0 and "latentbit" in out.output


def test_recipes_named_exist() -> None:
    named = {
        arguments.split()[0] for verb, arguments in COMMANDS if verb == "train" and "--" not in arguments
    }
    assert named and named <= set(recipes.names())
