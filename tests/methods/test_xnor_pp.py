import numpy as np
import torch
from methods.method_gradients import np_sign, sample, weight_and_gradient


def test_scale_starts_at_one_and_learns() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("xnor_pp", w, g)
    np.testing.assert_array_equal(value, np_sign(w))
    np.testing.assert_allclose(gradient, g * (np.abs(w) <= 1))


def test_gradient_of_the_scale_is_the_correlation_with_the_signs() -> None:
    from latentbit import methods

    w, g = sample()
    method = methods.create("xnor_pp").for_layer(torch.nn.Conv2d(3, 4, 3)).double()
    method.gamma.data = torch.tensor([0.5, -1.0, 2.0, 3.0], dtype=torch.float64)
    out = method.weight(torch.from_numpy(w))
    np.testing.assert_allclose(out.detach(), np_sign(w) * np.reshape([0.5, -1.0, 2.0, 3.0], (4, 1, 1, 1)))
    out.backward(torch.from_numpy(g))
    np.testing.assert_allclose(method.gamma.grad, (g * np_sign(w)).sum(axis=(1, 2, 3)))
