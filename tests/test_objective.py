import types

import pytest
import torch
from test_methods import digits
from torch import nn
from torch.nn import functional as F
from views.test_two_view import binary_net

from latentbit import TwoView, binarize_, losses, models
from latentbit.layers import BINARY_LAYERS
from latentbit.methods.parts.binarizer import Binarizer
from latentbit.objective import NoLogits, Objective, picked
from latentbit.views import InputTap, ViewError

LATENT = ["none", "instance", "label_aware", "label_contrastive", "reconstruction", "latent_ce"]


def test_reconstruction_errors_that_are_minimised_fall() -> None:
    """They grew without end as long as only B's side had a gradient."""
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent="reconstruction", latent_weight=1.0)
    optimizer = torch.optim.Adam(objective.parameters(), lr=5e-3)
    errors = []
    for step in range(60):
        start = 32 * (step % 8)
        outcome = objective(images[start : start + 32], labels[start : start + 32])
        optimizer.zero_grad()
        outcome.loss.backward()
        optimizer.step()
        errors.append(float(outcome.terms["latent"]))
    assert sum(errors[-8:]) < sum(errors[:8])


@pytest.mark.parametrize("latent", LATENT)
def test_loss_is_the_weighted_sum_of_its_terms(latent) -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent=latent, latent_weight=0.3)
    outcome = objective(images[:32], labels[:32])
    total = outcome.terms["task"] + (0.3 * outcome.terms["latent"] if latent != "none" else 0)
    torch.testing.assert_close(outcome.loss.detach(), total)
    torch.testing.assert_close(outcome.terms["task"], F.cross_entropy(outcome.logits, labels[:32]).detach())
    assert isinstance(objective.network, TwoView) == (latent != "none")
    outcome.loss.backward()
    assert all(p.grad is not None for p in objective.model.parameters())


def test_latent_term_is_the_loss_of_the_projected_features() -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent="label_aware").eval()
    outcome = objective(images[:16], labels[:16])
    views = objective.network(images[:16])
    z_b, z_w = objective.projection(views.features), objective.projection(views.latent_features)
    torch.testing.assert_close(
        outcome.terms["latent"], losses.label_aware(z_b, z_w, labels[:16], 10).detach()
    )
    torch.testing.assert_close(outcome.projected, z_b.detach())


def test_a_teacher_replaces_the_labels() -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent="none")
    teacher = torch.randn(16, 10)
    outcome = objective(images[:16], labels[:16], teacher)
    torch.testing.assert_close(outcome.terms["task"], losses.label_refinery(outcome.logits, teacher).detach())


def test_attention_is_compared_at_the_end_of_every_stage() -> None:
    images, labels = digits()
    student = models.create("resnet18_compact", in_channels=1, widths=(4, 8))
    binarize_(student)
    objective = Objective(student, num_classes=10, latent="none", attention_weight=2.0).eval()
    maps = [torch.rand(16, 3, 8, 8), torch.rand(16, 5, 4, 4)]
    soft = torch.randn(16, 10)
    outcome = objective(images[:16], labels[:16], soft, maps)
    ends = [student.stages[0](student.stem(images[:16]))]
    ends.append(student.stages[1](ends[0]))
    expected = losses.attention_matching(ends, maps).sum().detach()
    torch.testing.assert_close(outcome.terms["attention"], expected)
    torch.testing.assert_close(outcome.loss.detach(), outcome.terms["task"] + 2 * expected)


def test_center_loss_needs_no_latent_view() -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent="none", center_weight=0.1)
    before = objective.centers.clone()
    outcome = objective(images[:16], labels[:16])
    torch.testing.assert_close(outcome.loss.detach(), outcome.terms["task"] + 0.1 * outcome.terms["center"])
    assert not torch.equal(objective.centers, before)
    assert not isinstance(objective.network, TwoView)


def test_center_loss_may_learn_variances() -> None:
    images, labels = digits()
    objective = Objective(
        binary_net(), num_classes=10, latent="none", center_weight=0.1, center_variance=True
    )
    outcome = objective(images[:16], labels[:16])
    outcome.loss.backward()
    assert objective.log_variance.grad.any()


def test_penalties_of_the_method_are_added(monkeypatch) -> None:
    monkeypatch.setattr(Binarizer, "penalty", lambda self, w: w.square().sum())
    images, labels = digits()
    model = binary_net()
    outcome = Objective(model, num_classes=10, latent="none")(images[:8], labels[:8])
    expected = sum(model[i].weight.square().sum() for i in (2, 5, 8))
    torch.testing.assert_close(outcome.terms["penalty"], expected.detach())


def test_a_latent_loss_may_be_a_function_or_a_module_of_the_users_own() -> None:
    def apart(z_b: torch.Tensor, z_w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return ((z_b - z_w).square().sum(1) * labels).sum()

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, z_b: torch.Tensor, z_w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return self.scale * apart(z_b, z_w, labels)

    images, labels = digits()
    model = binary_net()
    outcome = Objective(model, num_classes=10, latent=apart, projection="none", latent_weight=0.5)(
        images[:8], labels[:8]
    )
    views = TwoView(model)(images[:8])
    z_b, z_w = (F.normalize(z, dim=1) for z in (views.features, views.latent_features))
    expected = apart(z_b, z_w, labels[:8])
    torch.testing.assert_close(outcome.terms["latent"], expected.detach())
    torch.testing.assert_close(outcome.loss.detach(), outcome.terms["task"] + 0.5 * expected.detach())
    scaled = Objective(model, num_classes=10, latent=Scaled(), projection="none")
    outcome = scaled(images[:8], labels[:8])
    torch.testing.assert_close(outcome.terms["latent"], 2 * expected.detach())
    outcome.loss.backward()
    assert scaled.latent.scale.grad is not None


def test_an_unknown_latent_loss_is_refused() -> None:
    with pytest.raises(
        ValueError, match="'contrastive' is not a function, nor one of none, instance, label_aware"
    ):
        Objective(binary_net(), num_classes=10, latent="contrastive")  # type: ignore[arg-type]


def test_compiles_to_one_graph() -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent="label_aware", projection="orthogonal", dim=8)
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    outcome = compiled(images[:16], labels[:16])
    outcome.loss.backward()
    assert torch.isfinite(outcome.loss)


def test_soft_labels_of_the_latent_view_take_their_share_of_the_task() -> None:
    """Joint training: (1 - k) CE(B, y) + k CE(B, softmax of W) + mu CE(W, y); W's own loss has its gradient, its
    soft labels have none."""
    torch.manual_seed(0)
    model = binary_net()
    objective = Objective(
        model, num_classes=10, latent="latent_ce", latent_weight=0.1, soft_weight=0.3
    ).eval()
    images, labels = torch.randn(8, 1, 8, 8), torch.arange(8)
    outcome = objective(images, labels)
    views = objective.network(images)
    log_p = views.logits.log_softmax(1)
    soft = -(views.latent_logits.softmax(1) * log_p).sum(1).mean()
    hard, latent = (F.cross_entropy(logits, labels) for logits in (views.logits, views.latent_logits))
    torch.testing.assert_close(outcome.terms["task"], (0.7 * hard + 0.3 * soft).detach())
    torch.testing.assert_close(outcome.loss, 0.7 * hard + 0.3 * soft + 0.1 * latent)
    detached = -(views.latent_logits.detach().softmax(1) * log_p).sum(1).mean()
    expected = torch.autograd.grad(0.7 * hard + 0.3 * detached + 0.1 * latent, model[2].weight)[0]
    torch.testing.assert_close(torch.autograd.grad(outcome.loss, model[2].weight)[0], expected)
    with pytest.raises(ValueError, match="soft_weight asks the latent view"):
        Objective(binary_net(), num_classes=10, latent="none", soft_weight=0.1)


class Segments(nn.Module):
    """A map of classes, no linear layer, logits in a dict as in torchvision."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(8), nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": self.head(self.norm(self.body(self.stem(x))))}


def dense_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, labels)


@pytest.mark.parametrize("latent", ["none", "instance"])
def test_a_segmentation_trains_with_a_task_of_its_own(latent) -> None:
    model = Segments()
    binarize_(model, keep=["stem", "head"])
    objective = Objective(model, latent=latent, task=dense_loss, classifier="head", latent_weight=0.1)
    images, labels = torch.randn(4, 1, 8, 8), torch.randint(3, (4, 8, 8))
    outcome = objective(images, labels)
    torch.testing.assert_close(outcome.terms["task"], dense_loss(outcome.logits, labels).detach())
    assert outcome.logits.shape == (4, 3, 8, 8)
    outcome.loss.backward()
    assert model.body.weight.grad is not None
    if latent != "none":
        assert outcome.projected.shape == (4, 32)  # the map was pooled to one vector per image


def test_a_network_without_a_linear_layer_needs_a_classifier_for_the_latent_loss_only() -> None:
    model = Segments()
    binarize_(model, keep=["stem", "head"])
    Objective(model, latent="none", task=dense_loss)
    with pytest.raises(ViewError, match="Segments has no linear layer: name its classifier"):
        Objective(model, latent="instance", task=dense_loss)
    with pytest.raises(ViewError, match="there is no layer 'heat', did you mean 'head'"):
        Objective(model, latent="instance", task=dense_loss, classifier="heat")


def test_logits_are_found_in_what_networks_return() -> None:
    logits = torch.randn(2, 3)
    output = types.SimpleNamespace(loss=None, logits=logits)  # transformers' ModelOutput is such an object
    for found in (logits, (logits, 1), {"logits": logits}, {"out": logits}, output):
        assert picked(found) is logits
    assert picked({"a": 1, "scores": logits}, "scores") is logits
    assert picked([1, logits], lambda result: result[1]) is logits
    with pytest.raises(NoLogits, match="returns a dict with a, b, and logits is not in it: say where"):
        picked({"a": 1, "b": 2})


def test_tokens_are_pooled_to_one_vector_per_image() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.mix, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.mix(self.first(x))).mean(1)

    model = Tokens()
    binarize_(model)
    outcome = Objective(model, num_classes=3)(torch.randn(5, 7, 4), torch.randint(3, (5,)))
    assert outcome.projected.shape == (5, 32)


def test_the_label_aware_loss_asks_for_the_number_of_classes() -> None:
    with pytest.raises(ValueError, match="need num_classes="):
        Objective(binary_net())


@pytest.mark.parametrize("latent", ["instance", "label_aware"])
def test_sums_over_images_weigh_the_same_in_parts(latent) -> None:
    """The losses of parts are averaged. Images of one class each, so that label_aware has no pairs over parts."""
    images, labels = digits()[0][:10], torch.arange(10)
    objective = Objective(binary_net(), num_classes=10, latent=latent).eval()
    whole = objective(images, labels).terms["latent"]
    objective.parts = 2
    halves = [objective(images[part], labels[part]).terms["latent"] for part in (slice(5), slice(5, 10))]
    torch.testing.assert_close(sum(halves) / 2, whole)


@pytest.mark.parametrize("latent", ["instance", "label_aware", "label_contrastive"])
def test_latent_losses_are_computed_in_full_precision_under_autocast(latent) -> None:
    images, labels = digits()
    objective = Objective(binary_net(), num_classes=10, latent=latent).eval()
    with torch.autocast("cpu", torch.bfloat16):
        outcome = objective(images, labels)
        views = objective.network(images)
    assert views.logits.dtype == torch.bfloat16
    z_b, z_w = (objective.projection(f.float()) for f in (views.features, views.latent_features))
    expected = {
        "instance": lambda: losses.instance(z_b, z_w),
        "label_aware": lambda: losses.label_aware(z_b, z_w, labels, 10),
        "label_contrastive": lambda: losses.label_contrastive(z_b, z_w, labels),
    }[latent]()
    torch.testing.assert_close(outcome.terms["latent"], expected.detach(), rtol=1e-5, atol=1e-7)


def test_distributions_of_inputs_count_until_a_share_of_training() -> None:
    images, labels = digits()
    model = binary_net()
    objective = Objective(model, num_classes=10, distribution_weight=2.0, distribution_until=0.5)
    seen = []
    for layer in model.modules():
        if isinstance(layer, BINARY_LAYERS):
            layer.register_forward_pre_hook(lambda layer, args: seen.append(args[0]))

    def parts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        seen.clear()
        outcome = objective(images[:16], labels[:16])
        rest = outcome.terms["task"] + objective.latent_weight * outcome.terms["latent"]
        return outcome.loss.detach(), rest, outcome.terms["distribution"]

    loss, rest, distribution = parts()
    torch.testing.assert_close(distribution, losses.activation_distribution(seen).detach())
    torch.testing.assert_close(loss, rest + 2 * distribution)
    objective.progress(0.5)
    loss, rest, _ = parts()
    torch.testing.assert_close(loss, rest)
    with pytest.raises(ValueError, match="has none"):
        Objective(nn.Sequential(nn.Linear(3, 3)), latent="none", distribution_weight=1.0)


def test_tokens_in_front_of_a_linear_layer_are_a_batch() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 5), nn.Linear(5, 2))
    binarize_(model)
    tap = InputTap(model)
    tap.arm()
    x = torch.randn(2, 7, 3)
    model(x)
    (caught,) = tap.take()
    torch.testing.assert_close(caught, model[0](x).flatten(0, 1))
