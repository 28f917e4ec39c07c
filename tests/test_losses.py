import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from latentbit import losses


def pairwise(z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
    """Eq. 5 of the paper, term by term."""
    total = z_b.new_zeros(())
    for i in range(len(z_b)):
        partners = [j for j in range(len(z_b)) if j != i and labels[j] == labels[i]]
        inner = (z_w[i] - z_b[i]).square().sum()
        for j in partners:
            inner = inner + (z_b[i] - z_b[j]).square().sum()
            inner = inner + (z_w[i] - z_b[j]).square().sum()
            inner = inner + (z_b[i] - z_w[j]).square().sum()
        total = total + inner / ((3 * len(partners) + 1) * z_b.shape[1])
    return total


CASES = [(1, 4, 3), (2, 1, 1), (7, 5, 20), (24, 3, 4), (40, 16, 5)]


@pytest.mark.parametrize("n, dim, classes", CASES)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_label_aware_is_the_pairwise_sum_in_value_and_gradient(n, dim, classes, offset) -> None:
    labels = torch.randint(classes, (n,))
    labels[0] = classes - 1  # often a singleton; other classes stay empty
    z_b = (torch.randn(n, dim, dtype=torch.float64) + offset).requires_grad_()
    z_w = torch.randn(n, dim, dtype=torch.float64) + offset
    expected = pairwise(z_b, z_w, labels)
    (gradient,) = torch.autograd.grad(expected, z_b)
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-3 if offset else 2e-5)):
        mine = z_b.detach().to(dtype).requires_grad_()
        loss = losses.label_aware(mine, z_w.to(dtype), labels, classes)
        loss.backward()
        torch.testing.assert_close(loss.double(), expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(mine.grad.double(), gradient, rtol=tolerance, atol=tolerance)


def test_label_aware_gradient_is_both_closed_forms() -> None:
    """Autograd of the loss weighs the category part twice; the printed Eq. 6 takes partners as constants."""
    n, dim, classes = 20, 6, 3
    labels = torch.randint(classes, (n,))
    z_b = torch.randn(n, dim, dtype=torch.float64, requires_grad=True)
    z_w = torch.randn(n, dim, dtype=torch.float64)
    (autograd,) = torch.autograd.grad(losses.label_aware(z_b, z_w, labels, classes), z_b)
    full, printed = torch.zeros_like(z_w), torch.zeros_like(z_w)
    for i in range(n):
        partners = [j for j in range(n) if j != i and labels[j] == labels[i]]
        k = 1 / ((3 * len(partners) + 1) * dim)
        instance = z_b[i] - z_w[i]
        category = sum(
            (2 * z_b[i] - z_b[j] - z_w[j] for j in partners), torch.zeros(dim, dtype=torch.float64)
        )
        full[i] = 2 * k * (instance + 2 * category)
        printed[i] = 2 * k * (instance + category)
    torch.testing.assert_close(autograd, full)

    # Partners as constants: only the terms of anchor i, seen from z_b[i].
    own = torch.zeros_like(z_w)
    for i in range(n):
        z = z_b[i].detach().requires_grad_()
        partners = [j for j in range(n) if j != i and labels[j] == labels[i]]
        inner = (z_w[i] - z).square().sum()
        for j in partners:
            inner = inner + (z - z_b[j].detach()).square().sum() + (z - z_w[j]).square().sum()
        (own[i],) = torch.autograd.grad(inner / ((3 * len(partners) + 1) * dim), z)
    torch.testing.assert_close(own, printed)


def test_smooth_losses_pass_gradcheck() -> None:
    labels = torch.tensor([0, 1, 0, 2, 0, 1])
    z_w = torch.randn(6, 4, dtype=torch.float64)
    centers = torch.randn(3, 4, dtype=torch.float64)
    z_b = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    for loss in (
        lambda z: losses.instance(z, z_w),
        lambda z: losses.label_aware(z, z_w, labels, 3),
        lambda z: losses.label_contrastive(F.normalize(z, dim=1), F.normalize(z_w, dim=1), labels, 0.5),
        lambda z: losses.reconstruction([z, 2 * z], [z_w, z_w]),
        lambda z: losses.label_refinery(z, z_w),
        lambda z: losses.center(z, labels, centers),
    ):
        assert torch.autograd.gradcheck(loss, (z_b,))


def test_no_gradient_reaches_the_latent_features() -> None:
    labels = torch.tensor([0, 0, 1])
    z_b, z_w = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    loss = losses.instance(z_b, z_w) + losses.label_aware(z_b, z_w, labels, 2)
    loss = loss + losses.label_contrastive(z_b, z_w, labels) + losses.label_refinery(z_b, z_w)
    loss.backward()
    assert z_w.grad is None and z_b.grad is not None


def test_label_aware_collapses_to_zero_and_contrastive_does_not() -> None:
    """Why the contrastive form exists: attraction alone is best served by one constant vector."""
    labels = torch.tensor([0, 1, 2, 0])
    constant = F.normalize(torch.ones(4, 8), dim=1)
    apart = torch.eye(8)[labels]
    assert losses.label_aware(constant, constant, labels, 3) == 0
    assert losses.label_contrastive(constant, constant, labels) > losses.label_contrastive(
        apart, apart, labels
    )


def test_label_contrastive_is_its_formula() -> None:
    labels = torch.tensor([0, 1, 0, 1, 1])
    z_b = F.normalize(torch.randn(5, 3, dtype=torch.float64), dim=1)
    z_w = F.normalize(torch.randn(5, 3, dtype=torch.float64), dim=1)
    total = 0.0
    for i in range(5):
        keys = [(z_b[j], labels[j]) for j in range(5) if j != i] + [(z_w[j], labels[j]) for j in range(5)]
        normaliser = torch.stack([(z_b[i] @ k / 0.2).exp() for k, _ in keys]).sum().log()
        positive = [z_b[i] @ k / 0.2 - normaliser for k, label in keys if label == labels[i]]
        total -= torch.stack(positive).mean() / 5
    torch.testing.assert_close(losses.label_contrastive(z_b, z_w, labels, 0.2), total)


def test_reconstruction_is_the_mean_square_per_layer() -> None:
    layers = [torch.randn(2, 3, 4, 4), torch.randn(2, 5)]
    latent = [torch.randn(2, 3, 4, 4), torch.randn(2, 5)]
    expected = [((b - w) ** 2).sum() / b.numel() for b, w in zip(layers, latent, strict=True)]
    torch.testing.assert_close(losses.reconstruction(layers, latent), torch.stack(expected))


def test_reconstruction_moves_both_views_towards_each_other() -> None:
    y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    losses.reconstruction([y], [w]).sum().backward()
    torch.testing.assert_close(y.grad, 2 * (y - w).detach() / 12)
    torch.testing.assert_close(w.grad, 2 * (w - y).detach() / 12)


def test_label_refinery_takes_the_teacher_as_target() -> None:
    student, teacher = torch.randn(4, 5), torch.randn(4, 5)
    expected = -(teacher.softmax(1) * student.log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(losses.label_refinery(student, teacher), expected)
    confident = 1e4 * F.one_hot(torch.tensor([0, 1, 2, 3]), 5).float()
    torch.testing.assert_close(
        losses.label_refinery(student, confident), F.cross_entropy(student, confident.argmax(1))
    )


def test_centers_move_as_in_center_loss() -> None:
    centers = torch.zeros(3, 2)
    z, labels = torch.tensor([[2.0, 0.0], [4.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 2])
    losses.update_centers_(centers, z, labels, rate=0.5)
    torch.testing.assert_close(centers, torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.25]]))
    assert losses.center(z, labels, centers) == pytest.approx((1 + 9 + 0.75**2) / 6)


def test_latent_cross_entropy_is_cross_entropy() -> None:
    logits, labels = torch.randn(4, 5), torch.tensor([1, 2, 3, 4])
    assert losses.latent_cross_entropy(logits, labels) == F.cross_entropy(logits, labels)


def test_attention_matching_compares_where_both_look() -> None:
    rng = np.random.default_rng(0)
    student = [rng.normal(size=(3, 4, 5, 5)), rng.normal(size=(3, 8, 2, 2))]
    teacher = [rng.normal(size=(3, 6, 5, 5)), rng.normal(size=(3, 8, 2, 2))]
    expected = []
    for y, t in zip(student, teacher, strict=True):
        maps = [(a**2).mean(1).reshape(3, -1) for a in (y, t)]
        a, b = (m / np.sqrt((m**2).sum(1, keepdims=True)) for m in maps)
        expected.append(((a - b) ** 2).mean())
    y = [torch.from_numpy(a).requires_grad_() for a in student]
    t = [torch.from_numpy(a).requires_grad_() for a in teacher]
    result = losses.attention_matching(y, t)
    np.testing.assert_allclose(result.detach(), expected)
    result.sum().backward()
    assert all(a.grad is not None for a in y) and all(a.grad is None for a in t)
    torch.testing.assert_close(
        losses.attention_matching([3 * y[0]], [y[0]]), torch.zeros(1, dtype=torch.float64)
    )


def test_center_with_variance_is_the_feature_loss_of_bonn() -> None:
    rng = np.random.default_rng(0)
    z, centers, s2 = rng.normal(size=(6, 4)), rng.normal(size=(3, 4)), rng.uniform(0.5, 2, size=(3, 4))
    labels = np.array([0, 1, 2, 0, 1, 0])
    expected = 0.0
    for f, m in zip(z, labels, strict=True):
        off = (f - centers[m]) ** 2
        expected += 0.5 * (off.sum() + (off / s2[m] + np.log(s2[m])).sum()) / 6
    result = losses.center_with_variance(
        torch.from_numpy(z), torch.from_numpy(labels), torch.from_numpy(centers), torch.from_numpy(np.log(s2))
    )
    np.testing.assert_allclose(result, expected)


def test_activation_distribution_is_the_loss_of_the_release() -> None:
    rng = np.random.default_rng(0)
    spread = np.array([0.1, 1.0, 5.0, 0.5, 2.0])
    offset = np.array([0.0, 3.0, 0.1, -2.0, -0.3])
    maps = rng.normal(size=(6, 5, 4, 4)) * spread.reshape(5, 1, 1) + offset.reshape(5, 1, 1)
    rows = rng.normal(size=(7, 5)) * spread[::-1] + offset
    expected = []
    for x, axes in ((maps, (0, 2, 3)), (rows, (0,))):
        m, s = x.mean(axes), np.sqrt(x.var(axes) + 1e-10)
        first = (np.maximum(np.minimum(2 - m - s, 2 + m - s), 0) ** 2).mean() + (
            np.maximum(s - 4, 0) ** 2
        ).mean()
        expected.append(first + np.maximum(m**2 - s**2, 0).mean())
    found = losses.activation_distribution([torch.from_numpy(maps), torch.from_numpy(rows)])
    np.testing.assert_allclose(found, np.mean(expected))
