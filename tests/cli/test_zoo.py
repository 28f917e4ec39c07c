import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latentbit import zoo
from latentbit.cli import app


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_list_names_every_network_with_its_accuracy() -> None:
    found = json.loads(call("zoo", "list", "--json"))
    assert [card["name"] for card in found] == zoo.names()
    assert all(f"zoo:{name}" in call("zoo", "list") for name in zoo.names())  # whole, on 80 columns too


def test_show_takes_the_name_with_and_without_zoo() -> None:
    assert call("zoo", "show", "digits") == call("zoo", "show", "zoo:digits")
    assert json.loads(call("zoo", "show", "digits", "--json"))["total"] == 360


def test_get_copies_the_file_and_never_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call("zoo", "get", "digits")
    assert Path("digits.lbit").read_bytes() == zoo.file("digits").read_bytes()
    Path("digits.lbit").write_text("mine")
    refused = CliRunner().invoke(app, ["zoo", "get", "digits"])
    assert refused.exit_code and "digits.lbit is there already" in str(refused.exception)
    assert Path("digits.lbit").read_text() == "mine"
    call("zoo", "get", "digits", "--force")
    assert Path("digits.lbit").read_bytes() == zoo.file("digits").read_bytes()


def test_export_of_a_name_writes_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call("export", "zoo:digits", "--to", "html")
    assert os.listdir(tmp_path) == ["digits.html"]
