import tiny_runs

from latentbit.figures.weights import ridges


def test_a_ridge_for_each_layer_in_order() -> None:
    layers = tiny_runs.analysis().numbers["weights"]["layers"]
    axes = ridges(tiny_runs.analysis()).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [layer["name"] for layer in layers]
    assert len(axes.collections) == len(layers)
    low, high = axes.get_ylim()
    assert low > high  # the first layer is on top
