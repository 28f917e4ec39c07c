"""What is minimised: task loss + weight * latent loss + the method's own penalty, as one module.

One module so that DDP and torch.compile see one forward: the binary view, the latent view beside it when a latent
loss asks for it, and their shared projection.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import losses
from latentbit.layers import BINARY_LAYERS
from latentbit.projection import Kind, Projection
from latentbit.views import FeatureTap, TwoView, Views, classifier_width, last_linear, stage_tap

Latent = Literal["none", "instance", "label_aware", "label_contrastive", "reconstruction", "latent_ce"]
LatentLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(z_b, z_w, labels) -> one number: features (N, D) of the binary and of the latent view, projected and normalised."""


class Outcome(NamedTuple):
    """One training forward."""

    loss: Tensor
    """What to call backward() on."""
    terms: dict[str, Tensor]
    """Its parts, unweighted and without gradient."""
    logits: Tensor
    """Of the binary view."""
    projected: Tensor | None
    """Binary features in the space of the latent loss; None for losses that have no such space."""


class Objective(nn.Module):
    """The network with its losses: `outcome = objective(images, labels); outcome.loss.backward()`.

    `network` is a TwoView when there is a latent loss, else the model itself; `model` is the binary network in
    either case. `latent` names one of ours, or is a function (or a module, which is trained too) of your own.
    `soft_weight` is the share of the task loss for which the classes that the latent view sees replace the labels;
    with latent="latent_ce" the latent view learns the labels itself, so that it has something to teach.
    With `teacher_logits` label refinery replaces the cross-entropy; `attention_weight` also asks for the maps at the
    ends of the teacher's stages.
    """

    centers: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        num_classes: int,
        latent: Latent | LatentLoss = "label_aware",
        latent_weight: float = 1e-4,
        projection: Kind = "learned",
        dim: int = 32,
        temperature: float = 0.1,
        soft_weight: float = 0.0,
        label_smoothing: float = 0.0,
        center_weight: float = 0.0,
        center_variance: bool = False,
        attention_weight: float = 0.0,
    ) -> None:
        super().__init__()
        if not callable(latent) and latent not in get_args(Latent):
            raise ValueError(
                f"latent loss {latent!r} is not a function, nor one of {', '.join(get_args(Latent))}"
            )
        if soft_weight > 0 and latent == "none":
            raise ValueError(
                "soft_weight asks the latent view for its classes, but latent='none' has no such view"
            )
        self.num_classes, self.soft_weight = num_classes, soft_weight
        self.latent, self.latent_weight = latent, latent_weight
        self.temperature, self.label_smoothing = temperature, label_smoothing
        self.center_weight, self.attention_weight = center_weight, attention_weight
        n_features = classifier_width(model)
        self.network: nn.Module = model
        if latent != "none":
            self.network = TwoView(
                model, latent_grad=latent == "latent_ce", collect_layers=latent == "reconstruction"
            )
        if callable(latent) or latent in ("instance", "label_aware", "label_contrastive"):
            self.projection = Projection(n_features, dim, projection)
        if attention_weight > 0:
            self.stages = stage_tap(model)
        if center_weight > 0:
            self.register_buffer("centers", torch.randn(num_classes, n_features))
            self.tap = FeatureTap(model, last_linear(model))
            shape = (num_classes, n_features)
            self.log_variance = nn.Parameter(torch.zeros(shape)) if center_variance else None

    @property
    def model(self) -> nn.Module:
        """The binary network."""
        return self.network.binary if isinstance(self.network, TwoView) else self.network

    def forward(
        self,
        images: Tensor,
        labels: Tensor,
        teacher_logits: Tensor | None = None,
        teacher_maps: Sequence[Tensor] = (),
    ) -> Outcome:
        if self.center_weight > 0:
            self.tap.arm()
        if self.attention_weight > 0:
            self.stages.arm()
        views = self.network(images)
        logits = views.logits if self.latent != "none" else views
        if teacher_logits is None:
            task = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        else:
            task = losses.label_refinery(logits, teacher_logits)
        if self.soft_weight > 0:
            soft = losses.label_refinery(logits, views.latent_logits)
            task = (1 - self.soft_weight) * task + self.soft_weight * soft
        loss, terms, projected = task, {"task": task.detach()}, None
        if self.latent != "none":
            latent, projected = self._latent_loss(views, labels)
            loss = loss + self.latent_weight * latent
            terms["latent"] = latent.detach()
        if self.center_weight > 0:
            features, _ = self.tap.take()
            if self.log_variance is None:
                center = losses.center(features, labels, self.centers)
            else:
                center = losses.center_with_variance(features, labels, self.centers, self.log_variance)
            loss = loss + self.center_weight * center
            terms["center"] = center.detach()
            if self.training:
                losses.update_centers_(self.centers, features.detach(), labels)
        if self.attention_weight > 0:
            attention = losses.attention_matching(self.stages.take(), teacher_maps).sum()
            loss = loss + self.attention_weight * attention
            terms["attention"] = attention.detach()
        penalties = self._penalties()
        if penalties:
            penalty = torch.stack(penalties).sum()
            loss = loss + penalty
            terms["penalty"] = penalty.detach()
        return Outcome(loss, terms, logits, projected)

    def _penalties(self) -> list[Tensor]:
        penalties = []
        for module in self.model.modules():
            if isinstance(module, BINARY_LAYERS):
                penalty = module.binarizer.penalty(module.weight)
                if penalty is not None:
                    penalties.append(penalty)
        return penalties

    def _latent_loss(self, views: Views, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.latent == "latent_ce":
            return losses.latent_cross_entropy(views.latent_logits, labels), None
        if self.latent == "reconstruction":
            return losses.reconstruction(views.layers, views.latent_layers).sum(), None
        z_b = self.projection(views.features)
        with torch.no_grad():
            z_w = self.projection(views.latent_features)
        if callable(self.latent):
            return self.latent(z_b, z_w, labels), z_b.detach()
        if self.latent == "instance":
            return losses.instance(z_b, z_w), z_b.detach()
        if self.latent == "label_aware":
            return losses.label_aware(z_b, z_w, labels, self.num_classes), z_b.detach()
        return losses.label_contrastive(z_b, z_w, labels, self.temperature), z_b.detach()
