import numpy as np
import pytest
import torch
from methods.method_gradients import layer_of, np_alpha, np_sign, sample

from latentbit.methods.cbcn import rotate
from latentbit.methods.parts.binarizer import Unsuitable


def clockwise(filters: np.ndarray, quarters: int) -> np.ndarray:
    return np.rot90(filters, -quarters, axes=(-2, -1))


def test_two_places_are_a_quarter_turn() -> None:
    w, _ = sample()
    for quarters in range(-3, 4):
        np.testing.assert_array_equal(rotate(torch.from_numpy(w), 2 * quarters), clockwise(w, quarters))
    ring = torch.tensor([[1.0, 2, 3], [8, 0, 4], [7, 6, 5]])
    assert rotate(ring, 1).tolist() == [[8, 1, 2], [7, 0, 3], [6, 5, 4]]


def test_copies_are_rotations_and_the_learned_filter_gets_the_gradient_of_all() -> None:
    w, g = sample((8, 3, 3, 3))
    layer = layer_of("cbcn", w)
    tied = np.concatenate([[clockwise(f, i) for i in range(4)] for f in w[::4]])
    np.testing.assert_array_equal(layer.weight.detach(), tied)
    out = layer.binarizer.weight(layer.weight)
    out.backward(torch.from_numpy(g))
    alpha, b = np_alpha(tied), np_sign(tied)
    np.testing.assert_allclose(out.detach(), alpha * b)
    g_copy = alpha * g * (np.abs(tied) <= 1) + b * (g * b).mean(axis=(1, 2, 3), keepdims=True)
    for group in range(2):
        summed = sum(clockwise(g_copy[4 * group + i], -i) for i in range(4))
        for i in range(4):
            expected = clockwise(summed, i) / 4
            np.testing.assert_allclose(layer.weight.grad[4 * group + i], expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3, 1, 1), (6, 3, 3, 3)])
def test_other_filters_are_refused(shape) -> None:
    with pytest.raises(Unsuitable, match="groups of 4"):
        layer_of("cbcn", np.ones(shape))
