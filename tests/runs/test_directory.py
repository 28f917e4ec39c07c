import pytest
from tiny_run import tiny_recipe

from latentbit.runs.directory import RunDirectory, RunError, environment, new_path, newest_path


def test_a_run_directory_holds_its_recipe_and_environment(tmp_path) -> None:
    chosen = tiny_recipe(tmp_path)
    run = RunDirectory.create(chosen, tmp_path / "run")
    assert RunDirectory.open(run.path).recipe() == chosen
    assert {"torch", "cpu", "git_commit", "python"} <= environment().keys()
    with pytest.raises(RunError, match="is not empty: continue it with"):
        RunDirectory.create(chosen, tmp_path / "run")


def test_what_is_no_run_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(RunError, match="nowhere does not exist"):
        RunDirectory.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match="has no recipe.toml"):
        RunDirectory.open(tmp_path)


def test_an_epoch_is_logged_once_and_a_torn_line_forgotten(tmp_path) -> None:
    run = RunDirectory.create(tiny_recipe(tmp_path), tmp_path / "run")
    assert run.metrics() == [] and not run.finished
    for epoch in (1, 2, 3):
        run.log({"epoch": epoch, "loss": 1.0})
    run.log({"epoch": 2, "loss": 2.0})
    assert run.metrics() == [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 2.0}]
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert len(run.metrics()) == 2
    run.log({"epoch": 3, "loss": 3.0})
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
