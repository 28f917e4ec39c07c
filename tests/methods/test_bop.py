import numpy as np
import torch
from methods.method_gradients import layer_of, np_sign, sample, weight_and_gradient
from torch import nn

from latentbit import BinaryConv2d, recipes
from latentbit.methods.bop import Bop, FlipOptimizer
from latentbit.runs.extend import hindrance


def test_the_layer_holds_signs_and_hands_on_their_gradient() -> None:
    w, g = sample()
    layer = layer_of("bop", w)
    np.testing.assert_array_equal(layer.weight.detach(), np_sign(w))
    value, gradient = weight_and_gradient("bop", w, g)
    np.testing.assert_array_equal(value, np_sign(w))
    np.testing.assert_array_equal(gradient, g)


def test_it_brings_its_optimizer_with_its_options() -> None:
    p = nn.Parameter(torch.ones(2))
    brought = Bop(gamma=0.1, tau=0.05).optimizer([p], lr=0.5)
    assert isinstance(brought, FlipOptimizer)
    (group,) = brought.param_groups
    assert (group["gamma"], group["tau"], group["lr"]) == (0.1, 0.05, 0.5)


def test_it_flips_where_the_mean_gradient_is_strong_and_has_the_sign_of_b() -> None:
    rng = np.random.default_rng(0)
    b = np.where(rng.random((6, 7)) < 0.5, -1.0, 1.0)
    p = nn.Parameter(torch.from_numpy(b.copy()))
    bop = FlipOptimizer([p], lr=0.5, gamma=0.1, tau=0.05)
    m = np.zeros_like(b)
    flipped = 0
    for step in range(10):
        bop.param_groups[0]["lr"] = 0.5 if step < 5 else 0.25  # the schedule halves gamma
        gamma = 0.1 if step < 5 else 0.05
        g = rng.normal(size=b.shape)
        p.grad = torch.from_numpy(g.copy())
        bop.step()
        m = (1 - gamma) * m + gamma * g
        change = (np.abs(m) > 0.05) & (np.sign(m) == b)
        b = np.where(change, -b, b)
        flipped += change.sum()
        np.testing.assert_array_equal(p.detach().numpy(), b)
    assert flipped > 10


def test_gamma_falls_to_a_tenth_after_each_part_of_the_training() -> None:
    layer = BinaryConv2d.from_float(nn.Conv2d(3, 4, 3), Bop(gamma=0.2, gamma_parts=5))
    brought = layer.binarizer.optimizer([layer.weight], lr=0.5)
    brought.param_groups[0]["lr"] = 0.1  # what the learning rate does has no say then
    for done, falls in [(0, 1), (99, 1), (100, 0.1), (300, 1e-3), (499, 1e-4), (500, 1e-4)]:
        layer.binarizer.set_progress(done / 500)
        layer.weight.grad = torch.ones_like(layer.weight)
        brought.state.clear()
        brought.step()
        np.testing.assert_allclose(brought.state[layer.weight]["momentum"], 0.2 * falls, rtol=1e-6)


def test_only_a_gamma_of_parts_follows_the_progress_of_training() -> None:
    """Loops of the user's own are asked for progress, and runs cannot be extended, where it counts."""
    assert Bop(gamma_parts=5).follows_progress() and not Bop().follows_progress()
    constant = ["schedule=constant"]
    assert hindrance(recipes.load("cifar10_resnet18_compact", [*constant, "method=bop"])) == ""
    parts = [*constant, "method=bop", "method.gamma_parts=2"]
    assert "method bop changes over" in hindrance(recipes.load("cifar10_resnet18_compact", parts))
