import tiny_runs
from matplotlib.collections import PathCollection

from latentbit.figures.representations import class_colours, tsne_map


def test_every_point_is_on_the_map_and_every_class_is_named() -> None:
    analysis = tiny_runs.analysis()
    axes = tsne_map(analysis, "W_dagger").axes[0]
    points = next(one for one in axes.collections if isinstance(one, PathCollection))
    assert len(points.get_offsets()) == 120  # type: ignore[arg-type]
    present = {analysis.numbers["classes"][label] for label in analysis.arrays["labels"]}
    assert {text.get_text() for text in axes.texts} == present
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    found = analysis.arrays["tsne_W_dagger"]
    assert left < found[:, 0].min() and found[:, 0].max() < right
    assert low < found[:, 1].min() and found[:, 1].max() < high


def test_colours_are_distinct() -> None:
    for n in (2, 10, 100):
        assert len(set(map(str, class_colours(n)))) == n
