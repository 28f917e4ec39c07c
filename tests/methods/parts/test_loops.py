"""Methods hear of every step and of the progress of training, whoever wrote the loop."""

import copy
import warnings

import pytest
import torch
from test_methods import digits, small_net
from torch import nn
from torch.nn import functional as F

import latentbit
from latentbit import Objective, binarize_
from latentbit.errors import LatentbitWarning
from latentbit.methods import IRNet


def net(method, factor: float = 1.0) -> nn.Sequential:
    model = small_net()
    binarize_(model, method)
    with torch.no_grad():
        for i in (2, 5, 8):
            model[i].weight.mul_(factor)
    return model


def plain_loop(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3) -> None:
    images, labels = digits()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(images[:32]), labels[:32]).backward()
        optimizer.step()


def largest(model: nn.Sequential) -> float:
    return max(model[i].weight.abs().max().item() for i in (2, 5, 8))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_bnn_is_clipped_in_a_loop_that_knows_nothing_of_it(kind) -> None:
    model = net("bnn", 100)
    plain_loop(model, kind(model.parameters(), lr=0.01))
    assert largest(model) == 1.0


def test_an_optimizer_made_before_binarize_and_a_copy_of_the_model() -> None:
    model = small_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0)
    binarize_(model, "bnn")
    twin = copy.deepcopy(model)
    plain_loop(model, optimizer)
    plain_loop(twin, torch.optim.SGD(twin.parameters(), lr=50.0))
    assert largest(model) == largest(twin) == 1.0


def test_under_a_wrapper_as_lightning_and_accelerate_have_it() -> None:
    """Both hand a closure, or themselves, to the step of the torch optimizer inside."""

    class Wrapper:
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self.inner = inner

        def step(self, closure) -> None:
            self.inner.step(closure=closure)

    model, (images, labels) = net("bnn", 100), digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[:32]), labels[:32])
        loss.backward()
        return loss

    Wrapper(optimizer).step(closure)
    assert largest(model) == 1.0


def test_every_step_is_told_once_though_two_views_share_a_layer_and_optimizers_nest() -> None:
    seen = []

    class Counting(latentbit.Binarizer):
        def weight(self, w: torch.Tensor) -> torch.Tensor:
            return latentbit.ops.sign_identity(w)

        def before_step(self, w: torch.Tensor) -> None:
            assert w.grad is not None
            seen.append("before")

        def after_step(self, w: torch.Tensor, lr: float) -> None:
            seen.append(lr)

        def optimizer(self, weights, lr):
            return torch.optim.SGD(weights, lr=lr)

    model, (images, labels) = small_net(), digits()
    binarize_(model, Counting(), only=["5"])
    objective = Objective(model, num_classes=10, latent="label_aware")
    optimizer = latentbit.optimizer_for(objective, lambda params: torch.optim.Adam(params, lr=0.5), lr=0.25)
    for _ in range(2):
        objective(images[:16], labels[:16]).loss.backward()
        optimizer.step()
    assert seen == ["before", 0.25] * 2
    objective.step_done(0.25)  # says nothing new
    assert seen == ["before", 0.25] * 2


def test_a_loop_without_an_optimizer_misses_what_comes_before_a_step_and_is_told() -> None:
    model = net("ovsw")
    with pytest.warns(LatentbitWarning, match="method ovsw changes the gradients of W before each step"):
        latentbit.step_done(model, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        latentbit.step_done(model, 0.1)


def test_a_loop_without_an_optimizer_says_so_itself() -> None:
    model = net("bnn")
    with torch.no_grad():
        model[2].weight.mul_(100)
    objective = Objective(model, num_classes=10, latent="none")
    objective.step_done(0.1)
    assert largest(model) == 1.0
    with torch.no_grad():
        model[2].weight.mul_(100)
    latentbit.step_done(model, 0.1)
    assert largest(model) == 1.0


def test_progress_reaches_the_schedule_of_every_layer() -> None:
    model = net(IRNet(t_min=0.1, t_max=10.0))
    objective = Objective(model, num_classes=10)
    objective.progress(0.5)
    for i in (2, 5, 8):
        torch.testing.assert_close(model[i].binarizer.temperature.t, torch.tensor(1.0))
    with pytest.raises(ValueError, match="from 0 to 1, not 3"):
        latentbit.progress(model, 3)


def test_a_schedule_that_nobody_moves_complains_once(recwarn) -> None:
    model = net("irnet")
    plain_loop(model, torch.optim.SGD(model.parameters(), lr=0.01), steps=102)
    said = {str(w.message) for w in recwarn if issubclass(w.category, LatentbitWarning)}
    assert len(said) == 1 and "method irnet changes as training goes on" in said.pop()


def test_one_that_is_moved_does_not() -> None:
    model = net("irnet")
    latentbit.progress(model, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LatentbitWarning)
        plain_loop(model, torch.optim.SGD(model.parameters(), lr=0.01), steps=101)


def test_steps_that_nobody_tells_are_missed() -> None:
    model, (images, labels) = net("bnn"), digits()
    objective = Objective(model, num_classes=10, latent="none")
    with pytest.warns(LatentbitWarning, match="method bnn changes W after every step"):
        for _ in range(100):
            objective(images[:2], labels[:2])


def test_bop_under_adam_says_that_it_has_a_rule_of_its_own() -> None:
    model = net("bop")
    with pytest.warns(
        LatentbitWarning, match="method bop has a rule of its own for W, FlipOptimizer, but Adam"
    ):
        plain_loop(model, torch.optim.Adam(model.parameters(), lr=0.01), steps=1)


def test_bop_holds_bits_with_the_optimizer_that_is_made_for_it(recwarn) -> None:
    model = net("bop")
    plain_loop(model, latentbit.optimizer_for(model, lambda p: torch.optim.Adam(p, lr=0.01), lr=0.01))
    assert all(bool((model[i].weight.abs() == 1).all()) for i in (2, 5, 8))
    assert not [w for w in recwarn if issubclass(w.category, LatentbitWarning)]
