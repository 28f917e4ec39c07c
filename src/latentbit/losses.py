"""What W teaches B: pure functions of features, logits and labels.

z_b are the binary view's features, z_w the latent view's, both (N, D); z_w carries no gradient. Symbols,
equations and what the paper leaves open: docs/method.md. Under torch.distributed the label-aware losses are
those of the joint batch of all processes. With accumulate=n each loss sees one part of the batch at a time: pairs of
images in different parts are not compared.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from latentbit.distributed import gather_over_processes, rank, sum_over_processes, world_size


def instance(z_b: Tensor, z_w: Tensor) -> Tensor:
    """sum_i ||z_w_i - z_b_i||^2: the two views of one image agree (paper, Eq. 5)."""
    return sum_over_processes((z_b - z_w.detach()).square().sum())


def label_aware(z_b: Tensor, z_w: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Features of one class, of both views, come together (paper, Eq. 6).

        sum_i K_i [ |w_i - b_i|^2 + sum_{j in I(i)} |b_i - b_j|^2 + |w_i - b_j|^2 + |b_i - w_j|^2 ]
        I(i) = {j != i : same label},  K_i = 1 / ((3 |I(i)| + 1) D)

    O(N D): for a class of n with means mb, mw the pairs collapse to

        sum_ij |b_i - b_j|^2 = 2n sum_i |b_i - mb|^2
        sum_ij |w_i - b_j|^2 =  n sum_i |w_i - mw|^2 + n sum_j |b_j - mb|^2 + n^2 |mw - mb|^2

    where i = j adds nothing to the first and the instance term to the second. Deviations from the class means
    are squared, never raw features: differences of large sums of squares would cancel in float32.
    """
    z_w = z_w.detach()
    dim = z_b.shape[1]
    ones = z_b.new_ones(len(z_b), 1)
    per_class = z_b.new_zeros(num_classes, 2 * dim + 1)
    per_class = sum_over_processes(per_class.index_add(0, labels, torch.cat([z_b, z_w, ones], dim=1)))
    n = per_class[:, -1:].detach()
    means = per_class[:, :-1] / n.clamp(min=1)
    mean_b, mean_w = means[labels].split(dim, dim=1)
    n_i = n[labels, 0]
    pairs = (4 * (z_b - mean_b).square() + 2 * (z_w - mean_w).square() + 2 * (mean_w - mean_b).square()).sum(
        1
    ) * n_i - (z_w - z_b).square().sum(1)
    weight = 1 / ((3 * n_i - 2) * dim)  # |I(i)| = n - 1
    return sum_over_processes((weight * pairs).sum())


def label_contrastive(z_b: Tensor, z_w: Tensor, labels: Tensor, temperature: float = 0.1) -> Tensor:
    """The label-aware loss with the repulsion that it lacks, so that its features cannot collapse.

    Mean over anchors b_i of -1/|P| sum_{p in P} log softmax(b_i . k / T)_p; keys k are all b_j (j != i) and all
    w_j, P those with the label of i. Expects L2-normalised features. Needs the N x 2N similarities.
    """
    first = rank() * len(z_b) if world_size() > 1 else 0
    keys = torch.cat([gather_over_processes(z_b), gather_over_processes(z_w.detach())])
    key_labels = gather_over_processes(labels).repeat(2)
    own = torch.arange(len(z_b), device=z_b.device) + first
    not_self = torch.ones(len(z_b), len(keys), dtype=torch.bool, device=z_b.device)
    not_self[torch.arange(len(z_b), device=z_b.device), own] = False
    positive = (labels[:, None] == key_labels[None, :]) & not_self
    similarity = (z_b @ keys.T / temperature).masked_fill(~not_self, float("-inf"))
    log_p = F.log_softmax(similarity, dim=1).masked_fill(~positive, 0.0)
    return -(log_p.sum(1) / positive.sum(1)).mean()  # w_i is always a positive: no division by zero


def reconstruction(layers: Sequence[Tensor], latent_layers: Sequence[Tensor]) -> Tensor:
    """R_l = mean of (Y~_l - Y_l)^2 for every binary layer l, as a vector; its sum is MIN FRE (paper, Eq. 10).

    With gradient through both, unlike the losses above: Y~_l moves with the same weights as Y_l, so that weights which
    pull Y_l towards a constant Y~_l drive it away, and errors end far above those without the loss.
    """
    return torch.stack([F.mse_loss(b, w) for b, w in zip(layers, latent_layers, strict=True)])


def latent_cross_entropy(latent_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the latent view; needs TwoView(latent_grad=True). The paper finds that it cannot converge."""
    return F.cross_entropy(latent_logits, labels)


def label_refinery(logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """-sum_k softmax(teacher)_k log softmax(student)_k, mean over the batch; it replaces the cross-entropy.

    The paper's text swaps the roles in its naming: the teacher is the target, the student the prediction.
    """
    return F.cross_entropy(logits, teacher_logits.detach().softmax(dim=1))


def attention_matching(layers: Sequence[Tensor], teacher_layers: Sequence[Tensor]) -> Tensor:
    """Where student and teacher look: squared distance of their attention maps for every pair of layers, as a vector.

    A = mean over channels of Y^2, flattened, of length 1 (Martinez et al., "Real-to-Binary", 2020). Confidence: medium;
    a public port divides by the largest value instead. Channels may differ, map sizes may not.
    """
    pairs = zip(layers, teacher_layers, strict=True)
    return torch.stack([F.mse_loss(_attention(y), _attention(t.detach())) for y, t in pairs])


def _attention(y: Tensor) -> Tensor:
    return F.normalize(y.square().mean(1).flatten(1), dim=1)


def activation_distribution(inputs: Sequence[Tensor]) -> Tensor:
    """Inputs of binary layers (N, C, ...) whose channels have signs that tell something (Ding et al., 2019).

    Per channel with mean m and deviation s over batch and pixels, averaged over channels, then over layers:

        max(0, 2 - |m| - s)^2    too near to 0        max(0, s - 4)^2    so wide that gradients vanish
        max(0, m^2 - s^2)        nearly all of one sign

    Source: the released code (ruizhoud/DistributionLoss), which weighs it by 2 and drops it for the last 5 of 65
    epochs. Confidence: high. There it looks at what BatchNorms give in front of Hardtanh and sign; here at what enters
    a binary layer, which is the same unless another activation stands between.
    """
    terms = []
    for x in inputs:
        columns = x.transpose(0, 1).flatten(1)
        var, mean = torch.var_mean(columns, dim=1, correction=0)
        std = (var + 1e-10).sqrt()
        near = (2 - mean.abs() - std).clamp(min=0).square().mean()
        wide = (std - 4).clamp(min=0).square().mean()
        one_sided = (mean.square() - std.square()).clamp(min=0).mean()
        terms.append(near + wide + one_sided)
    return torch.stack(terms).mean()


def center(z: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """1/(2N) sum_i ||z_i - c_{y_i}||^2 (Wen et al., 2016); the centers move by update_centers_, not by this."""
    return (z - centers.detach()[labels]).square().sum() / (2 * len(z))


def center_with_variance(z: Tensor, labels: Tensor, centers: Tensor, log_variance: Tensor) -> Tensor:
    """center plus 1/(2N) sum_i sum_d (z_id - c_d)^2 / s_d^2 + log s_d^2, variances learned per class and feature.

    The feature loss of BONN (Gu et al., 2019). Confidence: high (book of the authors); log s^2 as parameter is ours.
    """
    squares, logs = (z - centers.detach()[labels]).square(), log_variance[labels]
    return (squares + squares * torch.exp(-logs) + logs).sum() / (2 * len(z))


@torch.no_grad()
def update_centers_(centers: Tensor, z: Tensor, labels: Tensor, rate: float = 0.5) -> None:
    """c_j <- c_j - rate * sum_{y_i = j} (c_j - z_i) / (1 + n_j), over the joint batch."""
    ones = z.new_ones(len(z), 1)
    sums = z.new_zeros(len(centers), z.shape[1] + 1).index_add(0, labels, torch.cat([z, ones], dim=1))
    sums = sum_over_processes(sums)
    n = sums[:, -1:]
    centers -= rate * (n * centers - sums[:, :-1]) / (1 + n)
