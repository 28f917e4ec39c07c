import copy

import torch
from test_methods import small_net
from views.test_two_view import binary_net

from latentbit import binarize_, latent_view
from latentbit.layers import BINARY_LAYERS
from latentbit.views import AveragedView


def moved(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p))


def test_it_begins_as_the_latent_view_and_follows_by_the_decay() -> None:
    model = binary_net()
    averaged, x = AveragedView(model, 0.9), torch.randn(16, 1, 8, 8)
    torch.testing.assert_close(averaged(x), latent_view(model)(x))
    expected = [p.detach().clone() for p in model.parameters()]
    for _ in range(3):
        moved(model)
        averaged.follow()
        expected = [0.9 * a + 0.1 * p.detach() for a, p in zip(expected, model.parameters(), strict=True)]
    torch.testing.assert_close(list(averaged.view.parameters()), expected)
    averaged.begin()
    torch.testing.assert_close(averaged(x), latent_view(model)(x))


def test_parts_of_a_step_go_as_far_as_the_step() -> None:
    model = binary_net()
    whole, parts = AveragedView(model, 0.9), AveragedView(model, 0.9)
    moved(model)
    whole.follow()
    for _ in range(4):
        parts.follow(4)
    torch.testing.assert_close(list(parts.view.parameters()), list(whole.view.parameters()))


def test_it_gives_no_gradient_and_has_nothing_to_train() -> None:
    averaged = AveragedView(binary_net(), 0.9)
    assert not averaged(torch.randn(4, 1, 8, 8)).requires_grad
    assert not any(p.requires_grad for p in averaged.parameters())


def test_the_state_of_the_method_is_that_of_the_model() -> None:
    model = small_net()
    binarize_(model, "reactnet")
    averaged = AveragedView(model, 0.9)
    for mine, theirs in zip(averaged.view.modules(), model.modules(), strict=True):
        if isinstance(theirs, BINARY_LAYERS):
            assert mine.binarizer is theirs.binarizer and mine.weight is not theirs.weight


def test_a_copy_follows_the_copied_model() -> None:
    model = binary_net()
    model, averaged = copy.deepcopy((model, AveragedView(model, 0.0)))
    moved(model)
    averaged.follow()
    assert all(torch.equal(a, p) for a, p in zip(averaged.view.parameters(), model.parameters(), strict=True))


def test_after_a_move_it_still_follows() -> None:
    model = binary_net()
    both = torch.nn.ModuleList([model, AveragedView(model, 0.0)]).double()
    moved(model)
    both[1].follow()
    assert all(torch.equal(a, p) for a, p in zip(both[1].view.parameters(), model.parameters(), strict=True))


def test_methods_hear_of_the_steps_of_the_model_though_an_optimizer_has_all_weights() -> None:
    model = small_net()
    binarize_(model, "bnn")  # which clips W to [-1, 1] after every step
    all_weights = torch.nn.ModuleList([model, *(AveragedView(model, 0.9) for _ in range(8))])
    optimizer = torch.optim.SGD(all_weights.parameters(), lr=0.1)  # as anybody would make it
    model(torch.randn(8, 1, 8, 8)).sum().backward()
    layers = [module for module in model.modules() if isinstance(module, BINARY_LAYERS)]
    with torch.no_grad():
        for layer in layers:
            layer.weight.add_(3)
    optimizer.step()
    assert all(layer.weight.abs().max() <= 1 for layer in layers)
