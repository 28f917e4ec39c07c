import numpy as np
import torch
from methods.method_gradients import (
    input_and_gradient,
    layer_of,
    np_alpha,
    np_sign,
    sample,
    weight_and_gradient,
)

CENTERS = np.array([0.538, 1.076, 1.614])


def test_weights_pass_the_gradient_of_the_scaled_filter() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("hwgq", w, g)
    np.testing.assert_allclose(value, np_alpha(w) * np_sign(w))
    np.testing.assert_array_equal(gradient, g)


def test_activations_go_to_the_nearest_level_as_the_release_finds_it() -> None:
    x, g = sample((2, 3, 4, 4))
    x.flat[:4] = [0.0, -0.0, 1.614, 1.7]
    x[0, 1] *= 2
    expected = np.zeros_like(x)
    for i, value in enumerate(x.flat):
        if value > 0:
            bounds = [*(CENTERS[1:] + CENTERS[:-1]) / 2, np.inf]
            expected.flat[i] = next(c for c, bound in zip(CENTERS, bounds, strict=True) if value <= bound)
    value, gradient = input_and_gradient("hwgq", x, g)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_array_equal(gradient, g * ((x > 0) & (x <= 1.614)))


def test_every_level_is_a_layer_of_bits() -> None:
    layer = layer_of("hwgq", sample()[0]).float()
    deployed = layer.binarizer.deploy(layer.weight.detach())
    x = torch.tensor([-1.0, 0.0, 1e-45, 0.807, 0.80700004, 1.345, 1.3451, 9.0])
    parts = [deployed, *deployed.plus]
    bits = torch.stack([x >= part.threshold for part in parts])
    torch.testing.assert_close(layer.binarizer.input(x), 0.538 * bits.sum(0))
