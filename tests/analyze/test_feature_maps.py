import numpy as np
import pytest
import tiny_runs
import torch

from latentbit.analyze.feature_maps import Maps, default_layer, maps
from latentbit.analyze.trained import NothingToAnalyze, Trained, open_run
from latentbit.views import stale_view


@pytest.fixture(scope="module")
def trained() -> Trained:
    return open_run(tiny_runs.baseline(), device="cpu")


def test_maps_are_what_the_layer_multiplies(trained: Trained) -> None:
    assert trained.views is not None
    image = next(iter(trained.dataset.test_batches(4)))[0][2]
    found = maps(trained.views, image, "stages.0.2.conv")
    trees = {"B": trained.model, "W": stale_view(trained.model), "W_dagger": trained.views.latent}
    for key, tree in trees.items():
        seen: list[torch.Tensor] = []
        tree.get_submodule("stages.0.2.pre_norm").register_forward_hook(
            lambda m, a, out, s=seen: s.append(out)
        )
        with torch.no_grad():
            tree(image[None])
        x = seen[-1][0]
        expected = x.clamp(-1, 1) if key == "W_dagger" else torch.where(x >= 0, 1.0, -1.0)
        assert np.allclose(found.views[key], expected.numpy())


def test_agreement_counts_equal_signs() -> None:
    b = np.array([[[1.0, -1.0], [1.0, 1.0]]])
    w = np.array([[[0.3, 0.2], [-0.1, 1.0]]])
    assert Maps("x", {"B": b, "W": -b, "W_dagger": w}).agreement() == {"W": 0.0, "W_dagger": 0.5}


def test_default_is_the_deepest_layer_with_the_largest_maps() -> None:
    assert default_layer({"a": (8, 16, 16), "b": (8, 16, 16), "c": (16, 8, 8)}) == "b"


def test_unknown_layer_names_the_nearest(trained: Trained) -> None:
    assert trained.views is not None
    with pytest.raises(NothingToAnalyze, match=r"did you mean 'stages\.0\.2\.conv'"):
        maps(trained.views, torch.zeros(1, 8, 8), "stage.0.2.conv")
