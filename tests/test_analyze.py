"""The whole of an analysis: every part there, reused for the same weights and made anew for others."""

from pathlib import Path

import pytest
import tiny_runs

from latentbit.analyze import NothingToAnalyze, analyze, analyze_once
from latentbit.analyze.trained import open_run


def test_every_part_is_there_and_agrees() -> None:
    numbers = tiny_runs.analysis().numbers
    parts = {
        "accuracy",
        "mistakes",
        "cost",
        "representations",
        "reconstruction",
        "weights",
        "feature_maps",
        "history",
    }
    assert parts <= numbers.keys()
    matrix = numbers["mistakes"]["confusion"]
    assert sum(map(sum, matrix)) == numbers["accuracy"]["B"]["total"] == 360
    assert sum(row[i] for i, row in enumerate(matrix)) == numbers["accuracy"]["B"]["correct"]
    errors = numbers["reconstruction"]
    assert errors["average"] == pytest.approx(sum(errors["layers"].values()) / 8)
    assert numbers["representations"]["n"] == 120
    flips = [[entry["epoch"], entry["flip_rate"]] for entry in numbers["history"]]
    assert numbers["weights"]["flip_rate"] == flips and len(flips) == 3


def test_a_float_run_leaves_out_what_it_has_not() -> None:
    numbers = tiny_runs.float_analysis().numbers
    assert not {"reconstruction", "weights", "feature_maps"} & numbers.keys()
    assert list(numbers["representations"]["views"]) == ["B"]
    assert numbers["cost"]["total"]["bops"] == 0


def test_stored_analysis_is_reused_only_for_the_same_question(tmp_path: Path) -> None:
    run = tiny_runs.label_aware()
    first = analyze_once(run, samples=30, device="cpu")
    assert (run / "analysis" / "analysis.json").is_file()
    marked = run / "analysis" / "analysis.json"
    marked.write_text(marked.read_text().replace('"run": "label_aware"', '"run": "marked"'))
    assert analyze_once(run, samples=30, device="cpu").name == analyze_once(run).name == "marked"
    assert analyze_once(run, samples=31, device="cpu").name == "label_aware"
    again = analyze_once(run, samples=31, again=True, device="cpu")
    assert again.numbers["accuracy"] == first.numbers["accuracy"]


def test_the_chosen_image_and_layer_are_shown() -> None:
    found = analyze(tiny_runs.label_aware(), samples=10, layer="stages.1.3.conv", image=200, device="cpu")
    facts = found.numbers["feature_maps"]
    dataset = open_run(tiny_runs.label_aware(), device="cpu").dataset
    labels = [int(label) for _, batch in dataset.test_batches(360) for label in batch]
    assert (facts["layer"], facts["image"], facts["label"]) == ("stages.1.3.conv", 200, labels[200])
    with pytest.raises(NothingToAnalyze, match="0 to 359"):
        analyze(tiny_runs.label_aware(), samples=10, image=360, device="cpu")
