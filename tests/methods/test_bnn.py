import numpy as np
import torch
from methods.method_gradients import input_and_gradient, np_sign, sample, weight_and_gradient


def test_weight_has_no_scale_and_an_unchanged_gradient() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("bnn", w, g)
    np.testing.assert_array_equal(value, np_sign(w))
    np.testing.assert_array_equal(gradient, g)


def test_w_is_clipped_after_a_step() -> None:
    from latentbit import methods

    w = torch.tensor([[-3.0, 0.5, 1.5]])
    methods.create("bnn").after_step(w, 5e-3)
    assert w.tolist() == [[-1.0, 0.5, 1.0]]


def test_input_passes_inside_one() -> None:
    x, g = sample((2, 3, 4, 4))
    np.testing.assert_allclose(input_and_gradient("bnn", x, g)[1], g * (np.abs(x) <= 1))
