import copy

import numpy as np
import torch
from methods.method_gradients import np_alpha, np_sign, sample, weight_and_gradient
from torch import nn

import latentbit


def test_gradient_flows_through_alpha_too() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("xnor", w, g)
    b = np_sign(w)
    np.testing.assert_allclose(value, np_alpha(w) * b)
    through_alpha = b * (g * b).mean(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(gradient, np_alpha(w) * g * (np.abs(w) <= 1) + through_alpha)


def test_depthwise_filters_are_not_centred_away() -> None:
    """They see one input channel, so W minus its mean over input channels would be 0."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=4), nn.Flatten(), nn.Linear(64, 2))
    for method in ("xnor", "xnor_k"):
        model = copy.deepcopy(net)
        latentbit.binarize_(model, method)
        before = model[1].weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(8, 1, 8, 8)).square().mean().backward()
        optimizer.step()
        assert model[1].weight.abs().min() > 0
        torch.testing.assert_close(model[1].weight, before - 0.1 * model[1].weight.grad)


def test_w_is_centred_over_input_channels_and_clipped_after_a_step() -> None:
    from latentbit import methods

    w = torch.from_numpy(sample(seed=1)[0] * 3)
    expected = (w - w.mean(1, keepdim=True)).clamp(-1, 1)
    methods.create("xnor").after_step(w, 5e-3)
    torch.testing.assert_close(w, expected)
