import numpy as np
from methods.method_gradients import input_and_gradient, np_sign, sample, weight_and_gradient

PROGRESS = 0.6
POWER = 1 + (1 - np.cos(np.pi / 2 * PROGRESS)) * 2


def slope(x: np.ndarray, o: float = POWER) -> np.ndarray:
    """As the release writes it, case by case."""
    size = np.abs(x)
    middle = 0.1 ** (1 / o) / 0.1
    outside = (1 / o) * np.where(size > 0, size, 1) ** ((1 - o) / o)
    return np.where(size <= 0.1, middle, np.where(size <= 1.5, outside, 0))


def with_edges(shape: tuple[int, ...] = (4, 3, 3, 3)) -> tuple[np.ndarray, np.ndarray]:
    x, g = sample(shape)
    x.flat[:6] = [0.0, 0.1, -0.1, 1.5, -1.5, 1.6]
    return x, g


def test_weights_have_one_scale_per_layer_and_the_gradient_of_the_power() -> None:
    w, g = with_edges()
    value, gradient = weight_and_gradient("reste", w, g, lambda method: method.set_progress(PROGRESS))
    alpha = np.abs(w).mean()
    np.testing.assert_allclose(value, alpha * np_sign(w))
    through_alpha = np.sign(w) * (g * np_sign(w)).sum() / w.size
    np.testing.assert_allclose(gradient, g * alpha * slope(w) + through_alpha, atol=1e-12)


def test_activations_too() -> None:
    x, g = with_edges((2, 3, 4, 4))
    value, gradient = input_and_gradient("reste", x, g, lambda method: method.set_progress(PROGRESS))
    np.testing.assert_array_equal(value, np_sign(x))
    np.testing.assert_allclose(gradient, g * slope(x), atol=1e-12)


def test_training_begins_with_the_clipped_identity() -> None:
    x, g = with_edges((2, 3, 4, 4))
    _, gradient = input_and_gradient("reste", x, g)
    np.testing.assert_allclose(gradient, g * (np.abs(x) <= 1.5))
