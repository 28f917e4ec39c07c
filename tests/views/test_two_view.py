import copy

import pytest
import torch
from test_binarize import Functional
from test_methods import small_net
from torch import nn
from torch.nn import functional as F

from latentbit import TwoView, binarize_, latent_view, stale_view
from latentbit.views import ViewError, classifier_width, last_linear


def binary_net() -> nn.Sequential:
    model = small_net()
    binarize_(model)
    return model


def test_views_share_parameters_by_identity_and_keep_their_own_statistics() -> None:
    views = TwoView(binary_net())
    shared = list(zip(views.binary.parameters(), views.latent.parameters(), strict=True))
    assert all(a is b for a, b in shared)
    assert len(list(views.parameters())) == len(shared)  # the optimizer sees each weight once
    buffers = zip(views.binary.buffers(), views.latent.buffers(), strict=True)
    assert all(a is not b and a.data_ptr() != b.data_ptr() for a, b in buffers)
    views(torch.randn(16, 1, 8, 8) * 3 + 1)
    # After the first binary layer the views' features differ, and so do the statistics of the BN behind it.
    assert not torch.equal(views.binary[3].running_mean, views.latent[3].running_mean)
    assert torch.equal(views.binary[1].running_mean, views.latent[1].running_mean)


def test_views_share_the_state_of_the_method() -> None:
    model = small_net()
    binarize_(model, "rbnn")
    views = TwoView(model)
    for binary, latent in zip(views.binary.modules(), views.latent.modules(), strict=True):
        if hasattr(binary, "binarizer"):
            assert binary is not latent and binary.binarizer is latent.binarizer
    views.double()  # buffers are replaced when a module moves
    assert views.binary[2].binarizer.left is views.latent[2].binarizer.left


def test_latent_view_is_the_network_with_w_and_hard_tanh() -> None:
    model = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 7), nn.BatchNorm1d(7), nn.Linear(7, 3))
    binarize_(model)
    x = torch.randn(8, 5)
    hidden = F.linear(model[0](x).clamp(-1, 1), model[1].weight, model[1].bias)
    hidden = F.batch_norm(hidden, None, None, model[2].weight, model[2].bias, training=True)
    torch.testing.assert_close(latent_view(model)(x), model[3](hidden))


def test_stale_view_uses_the_statistics_of_the_binary_network() -> None:
    model = binary_net().eval()
    stale = stale_view(model)
    assert all(a is b for a, b in zip(model.buffers(), stale.buffers(), strict=True))
    assert all(a is b for a, b in zip(model.parameters(), stale.parameters(), strict=True))
    x = torch.randn(4, 1, 8, 8)
    weight = model[2].binarizer.latent_weight(model[2].weight)
    stem = model[1](model[0](x))
    expected = F.conv2d(
        torch.where(stem < 0, -1.0, 1.0), weight, model[2].bias, model[2].stride, model[2].padding
    )
    torch.testing.assert_close(stale[2](stem), expected)
    assert not torch.equal(stale(x), model(x))


def test_features_are_the_input_of_the_classifier() -> None:
    for model in (binary_net(), Functional()):
        if isinstance(model, Functional):
            binarize_(model)
        out = TwoView(model).eval()(torch.randn(4, 1, 8, 8))
        head = model.get_submodule(last_linear(model))
        torch.testing.assert_close(out.logits, head(out.features))
        torch.testing.assert_close(out.latent_logits, head(out.latent_features))
        assert out.features.shape == (4, classifier_width(model))


def test_the_latent_half_carries_no_gradient_unless_asked() -> None:
    x = torch.randn(4, 1, 8, 8)
    out = TwoView(binary_net())(x)
    assert out.logits.requires_grad and not out.latent_logits.requires_grad
    out = TwoView(binary_net(), latent_grad=True)(x)
    assert out.latent_logits.requires_grad
    with torch.no_grad():
        assert not TwoView(binary_net(), latent_grad=True)(x).latent_logits.requires_grad


def test_layer_outputs_pair_up() -> None:
    model = binary_net()
    out = TwoView(model, collect_layers=True)(torch.randn(4, 1, 8, 8))
    assert [tuple(t.shape) for t in out.layers] == [(4, 8, 4, 4), (4, 16, 4, 4), (4, 32)]
    assert [t.shape for t in out.layers] == [t.shape for t in out.latent_layers]


def test_a_half_run_alone_leaves_nothing_behind() -> None:
    views = TwoView(binary_net(), collect_layers=True)
    for _ in range(3):
        views.binary(torch.randn(4, 1, 8, 8))
    assert views._binary_tap.layers.outputs == [] and views._binary_tap.features is None
    assert len(views(torch.randn(4, 1, 8, 8)).layers) == 3


def test_two_views_compile_to_one_graph() -> None:
    views = TwoView(binary_net(), collect_layers=True).eval()
    x = torch.randn(4, 1, 8, 8)
    compiled = torch.compile(views, fullgraph=True, backend="aot_eager")
    for got, expected in zip(compiled(x), views(x), strict=True):
        torch.testing.assert_close(got, expected)
    views.train()
    compiled(x).logits.sum().backward()
    assert views.binary[2].weight.grad.abs().sum() > 0


def test_moving_one_half_tears_the_views_apart_and_moving_both_does_not() -> None:
    views = TwoView(binary_net())
    views.to(torch.float64)
    views.check_shared()
    assert views.latent[3].running_mean.dtype == torch.float64
    views.binary.to(torch.float32)
    assert views.latent[3].running_mean.dtype == torch.float64  # why the TwoView is what to move


def test_assign_breaks_sharing_and_is_found_out() -> None:
    views = TwoView(binary_net())
    views.binary.load_state_dict(copy.deepcopy(views.binary.state_dict()))
    views.check_shared()
    views.binary.load_state_dict(copy.deepcopy(views.binary.state_dict()), assign=True)
    with pytest.raises(ViewError, match="no longer share 0.weight"):
        views.check_shared()


def test_a_checkpoint_of_the_binary_view_opens_as_an_ordinary_network() -> None:
    views = TwoView(binary_net())
    views(torch.randn(16, 1, 8, 8))
    plain = small_net()
    plain.load_state_dict(views.binary.state_dict())
    assert torch.equal(plain[3].running_mean, views.binary[3].running_mean)


def test_deepcopy_keeps_the_pair_together() -> None:
    views = copy.deepcopy(TwoView(binary_net()))
    views.check_shared()
    views(torch.randn(4, 1, 8, 8))


def test_a_model_without_binary_layers_or_classifier_is_refused() -> None:
    with pytest.raises(ViewError, match="call latentbit.binarize_"):
        latent_view(small_net())
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1))
    binarize_(model)
    with pytest.raises(ViewError, match="name its classifier"):
        TwoView(model)
    TwoView(model, classifier="2")(torch.randn(1, 1, 2, 2))
