import json

import pytest
import torch
from tiny_run import tiny_recipe

from latentbit import data, runs
from latentbit.data import DataError
from latentbit.runs import RunDirectory, RunError, new_path, newest_path
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.train import train
from latentbit.views import TwoView


def test_a_run_directory_holds_its_recipe_and_environment(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path)
    run = RunDirectory.create(chosen, tmp_path / "run", compiled=True)
    assert runs.open(run.path).recipe() == chosen
    assert {"torch", "cpu", "git_commit", "python"} <= run.environment().keys() and run.environment()[
        "compiled"
    ]
    with pytest.raises(RunError, match="is not empty: continue it with"):
        RunDirectory.create(chosen, tmp_path / "run")


def test_what_is_no_run_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(RunError, match="nowhere does not exist"):
        runs.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match="is empty, so there is nothing to continue"):
        runs.open(tmp_path)
    (tmp_path / "letter.txt").touch()
    with pytest.raises(RunError, match="has no recipe.toml"):
        runs.open(tmp_path)
    with pytest.raises(RunError, match="letter.txt is a file, not a run directory"):
        runs.open(tmp_path / "letter.txt")
    with pytest.raises(RunError, match="letter.txt is a file: choose a folder"):
        RunDirectory.create(tiny_recipe(tmp_path), tmp_path / "letter.txt")


@pytest.mark.parametrize(
    "left", [[".recipe.toml.x1y2.tmp"], ["environment.json", ".data.json.ab.tmp"], [".lock"]]
)
def test_a_start_that_was_killed_leaves_a_folder_to_start_in(tmp_path, left) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in left:
        (folder / name).write_text("half")
    with pytest.raises(RunError, match="start it with `latentbit train RECIPE --out"):
        runs.open(folder)
    assert new_path(tmp_path, "run") == folder
    RunDirectory.create(tiny_recipe(tmp_path), folder)
    assert runs.open(folder).environment() and not list(folder.glob(".*.tmp"))


def test_an_epoch_is_logged_once_and_a_torn_line_put_aside(tmp_path) -> None:
    run = RunDirectory.create(tiny_recipe(tmp_path), tmp_path / "run")
    assert run.metrics() == [] and not run.finished
    for epoch in (1, 2, 3):
        assert run.log({"epoch": epoch, "loss": 1.0}) == ""
    run.log({"epoch": 2, "loss": 2.0})
    assert run.metrics() == [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 2.0}]
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert len(run.metrics()) == 2
    assert "1 damaged lines of metrics.jsonl were moved to" in run.log({"epoch": 3, "loss": 3.0})
    assert run.finished


def test_new_runs_are_numbered(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path)
    assert newest_path(tmp_path, "a") is None
    paths = []
    for _ in range(3):
        paths.append(new_path(tmp_path, "a"))
        RunDirectory.create(chosen, paths[-1])
    assert [p.name for p in paths] == ["a", "a-2", "a-3"]
    RunDirectory.create(chosen, tmp_path / "a-other")
    assert newest_path(tmp_path, "a") == tmp_path / "a-3"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("trained")
    return train(tiny_recipe(folder, "epochs=1"), out=folder / "run", quiet=True).run


def test_network_and_views_need_no_images(trained, monkeypatch) -> None:
    images = torch.randn(4, 1, 8, 8)
    monkeypatch.setattr(data, "open", lambda *_: pytest.fail("the data set was opened"))
    model = trained.network("last")
    assert not model.training
    views = trained.views("last")
    assert isinstance(views, TwoView) and torch.equal(views(images).logits, model(images))
    assert (
        runs.weights_at(str(trained.path)) == trained.last
        and runs.weights_at(str(trained.last)) == trained.last
    )
    assert trained.facts().classes == tuple("0123456789")
    with pytest.raises(RunError, match="keeps its best and its last network, not 'third'"):
        trained.network("third")


def test_a_run_of_0_1_0_learns_its_facts_where_its_data_set_is(trained, monkeypatch) -> None:
    stored = trained.path / "data.json"
    facts = trained.facts()
    stored.unlink()

    def no_data(*_: object) -> None:
        raise DataError("digits are not here")

    with monkeypatch.context() as patch:
        patch.setattr(data, "open", no_data)
        with pytest.raises(
            RunError, match=r"has no data.json.*digits are not here.*Run `latentbit eval .*` once"
        ):
            trained.network()
    assert trained.facts() == facts and stored.is_file()


def test_another_data_set_under_the_same_name_is_refused(trained) -> None:
    stored = trained.path / "data.json"
    before = stored.read_text()
    stored.write_text(json.dumps(json.loads(before) | {"checksum": "sha256:0", "n_test": 7}))
    with pytest.raises(
        RunError, match="trained on another data set than digits is here: n_test, checksum differ"
    ):
        trained.dataset()
    stored.write_text(before)
    assert DatasetFacts.of(trained.dataset()) == trained.facts()


def test_a_run_without_a_whole_epoch_says_so(tmp_path) -> None:
    run = RunDirectory.create(tiny_recipe(tmp_path), tmp_path / "run")
    with pytest.raises(
        RunError, match="has no last.safetensors yet: finish an epoch with `latentbit train --resume"
    ):
        run.network()
