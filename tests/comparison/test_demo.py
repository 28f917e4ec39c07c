from latentbit.comparison.demo import demo
from latentbit.runs import RunDirectory


def test_demo_ends_in_a_table_and_the_paths_of_both_runs(tmp_path, capsys) -> None:
    runs = demo(epochs=1, runs=tmp_path)
    out = capsys.readouterr().out
    assert "baseline" in out and "label_aware" in out
    assert [RunDirectory.open(r.path).recipe().loss.latent for r in runs] == ["none", "label_aware"]
    for run in runs:
        assert str(run.path) in out.replace("\n", "")
    page = runs[-1].path / "net.html"
    assert str(page.resolve()) in out.replace("\n", "") and page.stat().st_size < 120_000
