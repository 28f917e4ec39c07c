import numpy as np
import torch
from methods.method_gradients import layer_of, np_sign, sample, weight_and_gradient


def test_training_sees_w_and_evaluation_its_signs() -> None:
    w, g = sample()
    value, gradient = weight_and_gradient("proxquant", w, g)
    np.testing.assert_array_equal(value, w)
    np.testing.assert_array_equal(gradient, g)
    layer = layer_of("proxquant", w).eval()
    np.testing.assert_array_equal(layer.binarizer.weight(layer.weight).detach(), np_sign(w))


def test_the_step_solves_the_proximal_problem() -> None:
    """W minimises (z - w)^2 / 2 + lambda min(|z - 1|, |z + 1|), found here by trying values."""
    w, _ = sample()
    layer = layer_of("proxquant", w)
    layer.binarizer.set_progress(0.5)
    lr = 20.0
    with torch.no_grad():
        layer.binarizer.after_step(layer.weight, lr)
    strength = lr * 1e-4 * 150
    z = np.linspace(-4, 4, 80001)
    for value, result in zip(w.flatten()[:20], layer.weight.detach().flatten()[:20], strict=True):
        best = z[np.argmin((z - value) ** 2 / 2 + strength * np.minimum(np.abs(z - 1), np.abs(z + 1)))]
        np.testing.assert_allclose(result, np.clip(best, -1, 1), atol=2e-4)


def test_it_freezes_at_two_thirds() -> None:
    w, g = sample()
    layer = layer_of("proxquant", w)
    layer.binarizer.set_progress(0.7)
    out = layer.binarizer.weight(layer.weight)
    np.testing.assert_array_equal(out.detach(), np_sign(w))
    out.backward(torch.from_numpy(g))
    assert not layer.weight.grad.any()
    with torch.no_grad():
        layer.binarizer.after_step(layer.weight, 0.1)
    np.testing.assert_array_equal(layer.weight.detach(), np_sign(w))
