import json

from typer.testing import CliRunner

from latentbit import methods
from latentbit.cli import app

run = CliRunner().invoke


def test_list_has_every_method_with_what_it_is_and_what_it_keeps() -> None:
    lines = run(app, ["methods", "list"]).stdout.splitlines()
    assert lines[::3] == methods.names()
    assert all(line.startswith("    beside signs and scales: ") for line in lines[2::3])
    kept = dict(zip(lines[::3], lines[2::3], strict=True))
    assert kept["sign"].endswith("nothing") and "threshold" in kept["reactnet"]
    assert "mean of every sample" in kept["rbnn"]


def test_show_prints_the_manual() -> None:
    text = run(app, ["methods", "show", "irnet"]).stdout
    assert methods.manual("irnet") in text and "Confidence: high" in text
    assert text.endswith(
        """
Options, set as method.NAME=VALUE or in the [method] table of a recipe:
  t_min = 0.001    a number, at least 1e-06
      Temperature t at the start of training; the estimator is nearly the identity there.
  t_max = 10.0    a number, at least 1e-06
      Temperature t at the end of training; the higher, the narrower the estimator.
"""
    )
    assert "orientations = 4    one of 2, 4, 8\n" in run(app, ["methods", "show", "cbcn"]).stdout
    assert run(app, ["methods", "show", "sign"]).stdout.endswith("\nOptions: none\n")
    assert isinstance(run(app, ["methods", "show", "ir"]).exception, methods.UnknownMethod)


def test_every_method_says_where_it_is_from_and_how_sure_that_is() -> None:
    for name in methods.names():
        manual = methods.manual(name)
        assert "Source:" in manual and "Confidence:" in manual, name


def test_the_list_comes_as_json_too() -> None:
    found = json.loads(run(app, ["methods", "list", "--json"]).stdout)
    assert [one["name"] for one in found] == methods.names()
    assert next(one for one in found if one["name"] == "irnet")["options"]["t_min"] > 0
