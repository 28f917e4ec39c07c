"""What is minimised: task loss + weight * latent loss + the method's own penalty, as one module.

One module so that DDP and torch.compile see one forward: the binary view, the latent view beside it when a latent
loss asks for it, and their shared projection.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from latentbit import losses
from latentbit.binarize import Watch, constant_inputs, warn_of_constant
from latentbit.errors import LatentbitError, LatentbitWarning
from latentbit.layers import BINARY_LAYERS
from latentbit.methods.parts import loops
from latentbit.projection import Kind, Projection
from latentbit.views import FeatureTap, InputTap, TwoView, Views, classifier_width, last_linear, stage_tap

Latent = Literal["none", "instance", "label_aware", "label_contrastive", "reconstruction", "latent_ce"]
LatentLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(z_b, z_w, labels) -> one number: features (N, D) of the binary and of the latent view, projected and normalised."""


CHECKED_IMAGES = 32
"""Of the first batch, that check_inputs looks at."""


Task = Callable[[Any, Any], Tensor]
"""(logits, labels) -> one number: what the network is trained for."""
Pick = str | Callable[[Any], Tensor]


class Outcome(NamedTuple):
    """One training forward."""

    loss: Tensor
    """What to call backward() on."""
    terms: dict[str, Tensor]
    """Its parts, unweighted and without gradient."""
    logits: Tensor
    """Of the binary view, as the task sees them."""
    projected: Tensor | None
    """Binary features in the space of the latent loss; None for losses that have no such space."""


class NoLogits(LatentbitError):
    """The output of a network does not say where its logits are."""


def picked(output: Any, how: Pick | None = None) -> Tensor:
    """The logits in what a network returns: a tensor, a tuple, a dict, or an object as transformers has them."""
    if callable(how):
        return how(output)
    if isinstance(output, Tensor):
        return output
    for name in ("logits", "out") if how is None else (how,):
        if isinstance(output, Mapping) and name in output:
            return output[name]
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name)
    if how is None and isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
        return output[0]
    has = f" with {', '.join(map(str, output))}" if isinstance(output, Mapping) else ""
    where = "logits" if how is None else repr(how)
    raise NoLogits(
        f"the network returns a {type(output).__name__}{has}, and {where} is not in it: say where the logits are, "
        'Objective(output="name") or output=lambda result: result[0]'
    )


class Objective(nn.Module):
    """The network with its losses: `outcome = objective(images, labels); outcome.loss.backward()`.

    `network` is a TwoView when there is a latent loss, else the model itself; `model` is the binary network in
    either case. With `teacher_logits` label refinery replaces the task.

    num_classes       for latent="label_aware" and center_weight; other losses do not ask
    latent            what W teaches B: one of ours by name, "none", or a function (or a module, which is trained
                      too) of your own
    latent_weight     lambda, its weight
    projection, dim   the linear map in front of the latent loss, and the size of what it gives
    temperature       of label_contrastive
    soft_weight       share of the task for which the classes that the latent view sees replace the labels; with
                      latent="latent_ce" that view learns the labels itself, so that it has something to teach
    label_smoothing   of the cross-entropy
    center_weight     of the pull of features to the centre of their class; center_variance learns variances
    distribution_weight, distribution_until
                      of the pull of binary layers' inputs to distributions whose signs tell something, and the share
                      of training after which it is dropped
    attention_weight  of the distance to the maps at the ends of a teacher's stages, which forward then asks for
    task              (logits, labels) -> a number, instead of the cross-entropy: any labels, any shape of logits
    classifier        name of the layer whose input are the features; the last linear layer unless given
    output            where the logits are in what the network returns: a name or a function. Tensors, `.logits`,
                      ["logits"], ["out"] and the first of a tuple are found without it
    """

    centers: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        num_classes: int | None = None,
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
        distribution_weight: float = 0.0,
        distribution_until: float = 60 / 65,
        task: Task | None = None,
        classifier: str | None = None,
        output: Pick | None = None,
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
        if num_classes is None and (latent == "label_aware" or center_weight > 0):
            raise ValueError('latent="label_aware" and center_weight need num_classes=')
        self.num_classes, self.soft_weight = num_classes or 0, soft_weight
        self.task, self.output = task, output
        self.latent, self.latent_weight = latent, latent_weight
        self.temperature, self.label_smoothing = temperature, label_smoothing
        self.center_weight, self.attention_weight = center_weight, attention_weight
        self.distribution_weight, self.distribution_until = distribution_weight, distribution_until
        self._checked, self._forwards = False, 0
        self.parts = 1
        """In how many forwards the batch of a step comes, whose losses are then averaged: latent losses that are sums
        over images count so many times, or more parts would mean a smaller weight."""
        self.network: nn.Module = model
        if latent != "none":
            self.network = TwoView(
                model,
                classifier=classifier,
                latent_grad=latent in ("latent_ce", "reconstruction"),
                collect_layers=latent == "reconstruction",
            )
        if callable(latent) or latent in ("instance", "label_aware", "label_contrastive"):
            self.projection = Projection(classifier_width(model, classifier), dim, projection)
        if attention_weight > 0:
            self.stages = stage_tap(model)
        if distribution_weight > 0:
            if not any(isinstance(module, BINARY_LAYERS) for module in self.model.modules()):
                raise ValueError(
                    "distribution_weight looks at the inputs of binary layers, and the model has none"
                )
            self.layer_inputs = InputTap(self.model)
            # A buffer, so that a compiled objective follows it.
            self.distribution_share = nn.Buffer(torch.ones(()), persistent=False)
        if center_weight > 0:
            shape = (self.num_classes, classifier_width(model, classifier))
            self.register_buffer("centers", torch.randn(shape))
            self.tap = FeatureTap(model, classifier or last_linear(model))
            self.log_variance = nn.Parameter(torch.zeros(shape)) if center_variance else None

    @property
    def model(self) -> nn.Module:
        """The binary network."""
        return self.network.binary if isinstance(self.network, TwoView) else self.network

    def progress(self, share: float) -> None:
        """Say at the start of every epoch how much of the training is done, from 0 to 1: schedules follow it."""
        loops.progress(self.model, share)
        if self.distribution_weight > 0:
            self.distribution_share.fill_(share < self.distribution_until)

    def step_done(self, lr: float) -> None:
        """Say that the weights took a step. Torch's optimizers say so themselves: only for loops without one."""
        loops.step_done(self.model, lr)

    def check_inputs(self, images: Tensor) -> None:
        """Warn of binary layers that see one sign only. The first forward does so too, unless it is compiled."""
        if not self._checked:
            self._checked = True
            warn_of_constant(constant_inputs(self.model, images[:CHECKED_IMAGES]))

    def forward(
        self,
        images: Tensor,
        labels: Tensor,
        teacher_logits: Tensor | None = None,
        teacher_maps: Sequence[Tensor] = (),
    ) -> Outcome:
        """The loss of one batch, its parts and the logits. `teacher_logits` stand for the labels where given."""
        if not torch.compiler.is_compiling() and self.training:
            self._forwards += 1
            if self._forwards == loops.PATIENCE and (problem := loops.missing_steps(self.model)):
                warnings.warn(problem, LatentbitWarning, stacklevel=3)
        if self.center_weight > 0:
            self.tap.arm()
        if self.attention_weight > 0:
            self.stages.arm()
        if self.distribution_weight > 0:
            self.layer_inputs.arm()
        views = self._views(images)
        logits = picked(views if self.latent == "none" else views.logits, self.output)
        if teacher_logits is None and self.task is not None:
            task = self.task(logits, labels)
        elif teacher_logits is None:
            task = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        else:
            task = losses.label_refinery(logits, teacher_logits)
        if self.soft_weight > 0:
            soft = losses.label_refinery(logits, picked(views.latent_logits, self.output))
            task = (1 - self.soft_weight) * task + self.soft_weight * soft
        loss, terms, projected = task, {"task": task.detach()}, None
        if self.latent != "none":
            latent, projected = self._latent_loss(views, labels)
            loss = loss + self.latent_weight * latent
            terms["latent"] = latent.detach()
        if self.center_weight > 0:
            features = _full(self.tap.take()[0])
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
        if self.distribution_weight > 0:
            distribution = losses.activation_distribution(self.layer_inputs.take())
            loss = loss + self.distribution_weight * self.distribution_share * distribution
            terms["distribution"] = distribution.detach()
        penalties = self._penalties()
        if penalties:
            penalty = torch.stack(penalties).sum()
            loss = loss + penalty
            terms["penalty"] = penalty.detach()
        return Outcome(loss, terms, logits, projected)

    def _views(self, images: Tensor) -> Any:
        """What the network gives; the very first batch is watched."""
        if torch.compiler.is_compiling() or self._checked:
            return self.network(images)
        self._checked = True
        if isinstance(self.network, TwoView):  # which watches itself
            return self.network(images)
        with Watch(self.model) as watch:
            views = self.network(images)
        warn_of_constant(watch.constant())
        return views

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
            return losses.latent_cross_entropy(picked(views.latent_logits, self.output), labels), None
        if self.latent == "reconstruction":
            return losses.reconstruction(views.layers, views.latent_layers).sum(), None
        # Class sums, their counts and squared differences of near features need more than the 8 bits of bf16.
        with torch.autocast(views.features.device.type, enabled=False):
            z_b = self.projection(_full(views.features))
            with torch.no_grad():
                z_w = self.projection(_full(views.latent_features))
            return self._of_features(z_b, z_w, labels), z_b.detach()

    def _of_features(self, z_b: Tensor, z_w: Tensor, labels: Tensor) -> Tensor:
        if callable(self.latent):
            return self.latent(z_b, z_w, labels)
        if self.latent == "instance":
            return self.parts * losses.instance(z_b, z_w)
        if self.latent == "label_aware":
            return self.parts * losses.label_aware(z_b, z_w, labels, self.num_classes)
        return losses.label_contrastive(z_b, z_w, labels, self.temperature)


def _full(features: Tensor) -> Tensor:
    return features.float() if features.dtype in (torch.bfloat16, torch.float16) else features
