from pathlib import Path

import tiny_runs

from latentbit.figures import figures_of, save_figures


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
    assert parts | {"flip_rate", "weights", "feature_maps"} == figures.keys()
    save_figures(figures, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{n}.{s}" for n in figures for s in ("svg", "png")}


def test_a_float_run_has_fewer() -> None:
    found = figures_of(tiny_runs.float_analysis())
    assert {"accuracy", "tsne_b", "confusion"} <= found.keys()
    assert not {"reconstruction", "weights", "feature_maps", "tsne_w_dagger"} & found.keys()
