import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_runs

from latentbit import analyze, recipes
from latentbit.paper import reproduce as module
from latentbit.paper.reproduce import (
    NoSuchImages,
    NothingToTrain,
    Reproduced,
    TakenKey,
    UnknownTable,
    reproduce,
    scaled,
)
from latentbit.paper.side_by_side import markdown
from latentbit.paper.tables import PaperTable, Printed
from latentbit.recipes import Recipe
from latentbit.runs import RunDirectory
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.state import TrainingStopped
from latentbit.training.train import Training

TABLE = PaperTable(
    "A table",
    (
        Printed("r", "B", "cifar10_resnet18_compact_baseline", "accuracy_b", 82.37),
        Printed("r", "error", "cifar10_resnet18_compact_baseline", "error", 17.63),
        Printed("r", "R1", "cifar10_resnet18_compact_baseline", "layer 1", 0.00968),
        Printed("r", "R", "cifar10_resnet18_compact_baseline", "average", 0.03225),
        Printed("r", "R99", "cifar10_resnet18_compact_baseline", "layer 99", 0.5),
        Printed("s", "B", "cifar10_wrn22", "accuracy_b", 93.3),
    ),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The table above; training gives a tiny run instead. Lists what was trained."""
    trained: list[str] = []

    def train(
        recipe: Recipe, *, out: Path | None, resume: Path | None, quiet: bool, display: None
    ) -> Training:
        import latentbit.training.evaluate

        trained.append(recipe.name if resume is None else f"resumed {resume.name}")
        path = tiny_runs.baseline()
        return Training(
            RunDirectory(path), latentbit.training.evaluate.Scores(latentbit.training.evaluate.Score(1, 2))
        )

    monkeypatch.setitem(module.TABLES, "tiny", TABLE)
    monkeypatch.setattr("latentbit.training.jobs.train", train)
    return trained


def test_ours_stand_beside_the_paper(tiny: list[str], tmp_path: Path) -> None:
    found = reproduce("tiny", scale="digits", folder=tmp_path, quiet=True)
    assert tiny == ["digits_resnet18_compact_baseline_quick"]  # once, though five numbers need it
    last = RunDirectory(tiny_runs.baseline()).metrics()[-1]
    at = {line.column: line for line in found.lines if line.row == "r"}
    assert at["B"].ours == pytest.approx(100 * last["accuracy_b"])
    assert at["error"].ours == pytest.approx(100 - 100 * last["accuracy_b"])
    assert at["B"].difference == pytest.approx(100 * last["accuracy_b"] - 82.37)
    trained = analyze.open_run(tiny_runs.baseline(), "last")
    assert trained.views is not None
    errors = analyze.reconstruction.errors(trained.views, trained.sample(analyze.SAMPLES)).values()
    behind = [error.activated or 0.0 for error in errors]  # where the paper's notation has it
    assert at["R1"].ours == pytest.approx(behind[1])
    assert at["R"].ours == pytest.approx(sum(behind) / len(behind))
    assert at["R99"].ours is None and at["R99"].note.endswith(" has no layer 99")
    assert found.lines[-1].ours is None and found.lines[-1].note == "too large for this scale"
    text = markdown(found)
    assert f"| {100 * last['accuracy_b']:.2f} | 82.37 |" in text and "embedded digits" in text
    assert json.loads(json.dumps(found.as_dict()))["lines"][0]["difference"] == at["B"].difference


def test_several_seeds_give_mean_and_spread(tiny: list[str], tmp_path: Path) -> None:
    found = reproduce("tiny", scale="digits", seeds=2, folder=tmp_path, quiet=True)
    assert len(tiny) == 2 and tiny[1].endswith("_seed1")
    assert found.lines[0].spread == 0 and " ± 0.00" in markdown(found)


def test_what_is_finished_is_reused_and_what_is_not_continued(tmp_path: Path, tiny: list[str]) -> None:
    wanted = scaled("cifar10_resnet18_compact_baseline", "digits")
    assert wanted is not None
    begun = RunDirectory.create(replace(wanted, name="other name"), tmp_path / "begun")
    RunDirectory.create(replace(wanted, optim=replace(wanted.optim, lr=1e-3)), tmp_path / "not_the_same")
    reproduce("tiny", scale="digits", folder=tmp_path, quiet=True)
    assert tiny == ["resumed begun"]
    entry = {"epoch": wanted.optim.epochs, "accuracy_b": 0.5, "accuracy_w": 0.2, "accuracy_w_dagger": 0.4}
    begun.log(entry)
    tables = PaperTable("B only", TABLE.numbers[:1])
    module.TABLES["tiny"] = tables
    assert reproduce("tiny", scale="digits", folder=tmp_path, quiet=True).lines[0].ours == 50
    assert tiny == ["resumed begun"]


def test_a_signal_leaves_what_is_known(
    tmp_path: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tiny_runs.baseline())
    monkeypatch.setattr("latentbit.training.jobs.train", lambda *a, **k: Training(run, None))
    found = reproduce("tiny", scale="digits", folder=tmp_path, quiet=True)
    assert found.stopped and found.lines[0].note == "not run yet"


def test_a_diverged_run_is_noted(tmp_path: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(*args: object, **options: object) -> Training:
        raise TrainingStopped("the loss is nan")

    monkeypatch.setattr("latentbit.training.jobs.train", diverge)
    found = reproduce("tiny", scale="digits", folder=tmp_path, quiet=True)
    assert found.lines[0].note == "the loss is nan" and not found.stopped


def test_scales_change_what_they_say() -> None:
    name = "cifar10_resnet18_compact_label_aware latent_weight=1e-3"
    full, quick, digits = (scaled(name, scale) for scale in ("full", "quick", "digits"))  # type: ignore[arg-type]
    assert full and quick and digits
    assert (full.optim.epochs, quick.optim.epochs, digits.optim.epochs) == (300, 8, 15)
    assert full.data == quick.data and digits.data.dataset == "digits"
    assert {one.loss.latent_weight for one in (full, quick, digits)} == {1e-3}
    assert len({one.name for one in (full, quick, digits)}) == 3
    assert scaled("cifar10_wrn22", "quick") is None and scaled("cifar10_wrn22", "full") is not None


def test_epochs_may_be_chosen_at_every_scale(tmp_path) -> None:
    for scale, suffix in (("full", ""), ("quick", "_quick"), ("digits", "_digits")):
        one = scaled("cifar10_resnet18_compact_baseline", scale, epochs=30)  # type: ignore[arg-type]
        assert one is not None and one.optim.epochs == 30 and one.name.endswith("_epochs30")
        found = Reproduced("table1", "", scale, (), epochs=30)  # type: ignore[arg-type]
        assert found.file_name == f"table1{suffix}_epochs30" and found.scaled_down.startswith("30 epochs")
    assert Reproduced("table1", "", "full", ()).scaled_down == ""
    assert Reproduced("table1", "", "quick", (), epochs=8).file_name == "table1_quick"


def test_changes_are_those_of_every_run_and_stand_in_the_table(tiny: list[str], tmp_path: Path) -> None:
    changes = ["image_size=16", "method.name=bireal"]
    found = reproduce("tiny", changes, scale="quick", folder=tmp_path, quiet=True)
    assert tiny == ["cifar10_resnet18_compact_baseline_quick_image_size16_method.namebireal"]
    assert found.file_name == "tiny_quick_image_size16_method.namebireal"
    assert found.scaled_down.endswith("can train; image_size=16, method.name=bireal in every run")
    assert "image_size=16" in markdown(found) and found.as_dict()["changes"] == changes
    one = scaled("cifar10_resnet18_compact_baseline", "quick", changes=changes)
    assert one is not None and one.data.image_size == 16 and one.method.name == "bireal"
    folder = Reproduced("table1", "", "full", (), changes=("start=runs/a b",)).file_name
    assert folder == "table1_startruns-a-b"


@pytest.mark.parametrize("change", ["epochs=3", "optim.epochs=3", "seed=1", "dataset=digits", "root=images"])
def test_what_an_option_says_is_no_change(change: str) -> None:
    with pytest.raises(TakenKey, match=f"{change!r}: the option --"):
        reproduce("table1", [change])


def test_what_the_table_varies_is_not_changed() -> None:
    with pytest.raises(TakenKey, match="the table sets latent_weight itself"):
        reproduce("lambda", ["loss.latent_weight=1"])


@pytest.mark.parametrize(
    "options",
    [{"scale": "quick"}, {"epochs": 3}, {"seeds": 2}, {"root": Path("images")}, {"changes": ["lr=1"]}],
)
def test_complexity_refuses_options_of_trainings(options: dict[str, Any]) -> None:
    with pytest.raises(NothingToTrain, match="'complexity' .* trains nothing: leave out --quick"):
        reproduce("complexity", **options)


def test_complexity_needs_no_run() -> None:
    lines = {(line.row, line.column): line for line in reproduce("complexity").lines}
    assert lines["BOPs", "resnet18"].ours == 1_676_279_808
    assert lines["BOPs", "resnet34"].paper == 3.526e9


def test_unknown_table_names_the_nearest() -> None:
    with pytest.raises(UnknownTable, match="did you mean 'table1'"):
        reproduce("tabel1")


def imagenet_run(folder: Path, *, classes: int = 1000, epochs: int = 120, top5: bool = True) -> RunDirectory:
    """A finished run of the recipe imagenet_resnet18, as far as tables look at it."""
    wanted = recipes.load("imagenet_resnet18", ["root=/elsewhere/imagenet", "workers=3"])
    run = RunDirectory.create(wanted, folder / "mine")
    facts = DatasetFacts(
        "image_folder", tuple(map(str, range(classes))), 3, 224, (0,) * 3, (1,) * 3, 9, 9, ""
    )
    (run.path / "data.json").write_text(facts.dumps())
    entry = {"epoch": epochs, "accuracy_b": 0.61} | ({"top5_b": 0.83} if top5 else {})
    run.log(entry)
    return run


def test_imagenet_shows_runs_that_are_there_and_trains_nothing_unasked(tmp_path: Path) -> None:
    found = reproduce("table8", folder=tmp_path, quiet=True)
    assert all(line.ours is None for line in found.lines)
    notes = {line.row: line.note for line in found.lines}
    assert "--root DIR, the folder of ImageNet, trains it" in notes["ResNet-18 label-aware"]
    assert notes["ResNet-18 RBNN"] == ""  # quoted: there is nothing to train

    imagenet_run(tmp_path)
    at = {(line.row, line.column): line for line in reproduce("table8", folder=tmp_path).lines}
    assert at["ResNet-18 label-aware", "top-1, %"].ours == 61
    assert at["ResNet-18 label-aware", "top-5, %"].difference == pytest.approx(83 - 84.6)
    assert at["ResNet-34 label-aware", "top-1, %"].ours is None
    assert "| ResNet-18 label-aware | 61.00 | 63.40 | -2.40 | 83.00 | 84.60 | -1.60 |" in markdown(
        reproduce("table8", folder=tmp_path)
    )


def test_a_run_on_other_images_is_no_run_on_imagenet(tmp_path: Path) -> None:
    run = imagenet_run(tmp_path, classes=10)
    lines = reproduce("table8", folder=tmp_path).lines
    note = next(line.note for line in lines if line.row == "ResNet-18 label-aware")
    assert note == f"{run.path} was trained on 10 classes, ImageNet has 1000"
    with pytest.raises(NoSuchImages, match="'table1' has its own data set: --root"):
        reproduce("table1", folder=tmp_path, root=tmp_path)
    assert {line.note for line in reproduce("table8", scale="quick", folder=tmp_path).lines} == {
        "too large for this scale",
        "",
    }


def test_with_its_images_the_table_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def train(recipe: Recipe, **others: object) -> Training:
        asked.append(f"{recipe.name} {recipe.data.root}")
        raise TrainingStopped("no")

    monkeypatch.setattr("latentbit.training.jobs.train", train)
    monkeypatch.setattr("latentbit.training.jobs.seconds_of_steps", lambda recipe: 1.0)
    reproduce("table8", folder=tmp_path, root=tmp_path / "images", quiet=True)
    assert f"imagenet_resnet18_kd {tmp_path / 'images'}" in asked and len(asked) == 8
