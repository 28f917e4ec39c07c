"""Completion in a shell: verbs, recipes and options, as bash asks for them."""

import pytest
from typer.testing import CliRunner

from latentbit.cli import app


@pytest.mark.parametrize(
    "words, expected",
    [
        ("latentbit tr", "train"),
        ("latentbit train digits_", "digits_resnet18_compact"),
        ("latentbit train --res", "--resume"),
    ],
)
def test_bash_is_told_what_may_follow(words: str, expected: str) -> None:
    asked = {"_LATENTBIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    said = CliRunner().invoke(app, [], env=asked, prog_name="latentbit").output
    assert expected in said.split()
