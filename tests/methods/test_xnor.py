import numpy as np
import torch
from methods.method_gradients import np_alpha, np_sign, sample, weight_and_gradient


def test_gradient_flows_through_alpha_too() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("xnor", w, g)
    b = np_sign(w)
    np.testing.assert_allclose(value, np_alpha(w) * b)
    through_alpha = b * (g * b).mean(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(gradient, np_alpha(w) * g * (np.abs(w) <= 1) + through_alpha)


def test_w_is_centred_over_input_channels_and_clipped_after_a_step() -> None:
    from latentbit import methods

    w = torch.from_numpy(sample(seed=1)[0] * 3)
    expected = (w - w.mean(1, keepdim=True)).clamp(-1, 1)
    methods.create("xnor").after_step(w, 5e-3)
    torch.testing.assert_close(w, expected)
