import os
from pathlib import Path

import tiny_runs

from latentbit.analyze import save_analysis
from latentbit.figures import draw_once, figures_of, save_figures


def test_every_figure_is_written_twice(tmp_path: Path) -> None:
    figures = figures_of(tiny_runs.analysis())
    parts = {
        "accuracy",
        "training",
        "loss",
        "tsne_b",
        "tsne_w_dagger",
        "confusion",
        "worst",
        "reconstruction",
    }
    assert parts | {"unexplained", "flip_rate", "weights", "feature_maps"} == figures.keys()
    some = {name: figures[name] for name in ("loss", "weights")}
    paths = save_figures(some, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{n}.{s}" for n in some for s in ("svg", "png")}
    assert [path.name for path in paths] == ["loss.png", "weights.png"]


def test_drawn_figures_are_kept_until_the_analysis_is_newer(tmp_path: Path) -> None:
    single = tiny_runs.float_analysis()
    save_analysis(single, tmp_path)
    draw_once(single, tmp_path)
    (tmp_path / "loss.svg").write_text("kept")
    draw_once(single, tmp_path)
    assert (tmp_path / "loss.svg").read_text() == "kept"
    os.utime(tmp_path / "loss.png", (0, 0))
    draw_once(single, tmp_path)
    assert (tmp_path / "loss.svg").read_text() != "kept"


def test_a_float_run_has_fewer() -> None:
    found = figures_of(tiny_runs.float_analysis())
    assert {"accuracy", "tsne_b", "confusion"} <= found.keys()
    assert not {"reconstruction", "weights", "feature_maps", "tsne_w_dagger"} & found.keys()
