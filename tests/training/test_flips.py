import torch
from views.test_two_view import binary_net

from latentbit.training.flips import flip_rate, signs


def test_flip_rate_is_the_share_of_changed_signs() -> None:
    model = binary_net()
    before = signs(model)
    total = sum(mask.numel() for mask in before.values())
    with torch.no_grad():
        model[2].weight.view(-1)[:5] *= -1
        model[5].weight *= 2
        model[0].weight *= -1  # real: does not count
    assert flip_rate(before, signs(model)) == 5 / total
    assert flip_rate({}, {}) == 0.0
