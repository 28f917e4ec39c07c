"""The two views of one network: B with sign activations, W with hard tanh, over the same Parameters.

A view is an object, not a mode: nothing is switched, so nothing can be left switched. Each view has its own
BatchNorm statistics and both share gamma and beta, which are BN_B and BN_W of the paper (Eq. 4).
Wrap, move and convert the TwoView, never one half of it. FSDP replaces Parameters and is not supported.
"""

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from latentbit.binarize import Watch, warn_of_constant
from latentbit.layers import BINARY_LAYERS, View
from latentbit.views.taps import FeatureTap, ViewError, classifier_width, last_linear


def latent_view(model: nn.Module) -> nn.Module:
    """A second module tree over the same Parameters that computes with W and hard tanh; own BN statistics."""
    return _twin(model, "latent", shared=model.parameters())


def stale_view(model: nn.Module) -> nn.Module:
    """W in place of B in the binary network as it is: its sign activations, its BN statistics (shared).

    The paper's 41 %: what W scores when its features meet statistics collected for B.
    """
    return _twin(model, "stale", shared=[*model.parameters(), *model.buffers()])


def _twin(model: nn.Module, view: View, shared: Iterable[Tensor]) -> nn.Module:
    # The binarizers too: schedules and rotations are state of the layer, not of one view of it.
    binarizers = [module.binarizer for module in model.modules() if isinstance(module, BINARY_LAYERS)]
    twin = copy.deepcopy(model, memo={id(kept): kept for kept in [*shared, *binarizers]})
    layers = [module for module in twin.modules() if isinstance(module, BINARY_LAYERS)]
    if not layers:
        raise ViewError(f"{type(model).__name__} has no binary layer: call latentbit.binarize_(model) first")
    for layer in layers:
        layer.view = view
    return twin


class Views(NamedTuple):
    """What one forward of a TwoView gives. Features are the inputs of the classifier, (N, D)."""

    logits: Any
    """What the network returns: logits, or whatever holds them."""
    features: Tensor
    latent_logits: Any
    latent_features: Tensor
    layers: list[Tensor]
    """Outputs of the binary layers in order of execution; empty unless collect_layers."""
    latent_layers: list[Tensor]


class TwoView(nn.Module):
    """A binary network and its latent view, side by side: the module to train, move, compile and wrap in DDP.

    The latent half runs without gradient unless `latent_grad`. `classifier` names the layer whose input are
    the features; by default the last linear layer.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        classifier: str | None = None,
        latent_grad: bool = False,
        collect_layers: bool = False,
    ) -> None:
        super().__init__()
        self.binary = model
        self.latent = latent_view(model)
        self.latent_grad = latent_grad
        self.compiled_apart = False
        """Whether torch.compile gets a graph for each view instead of one for both. With gradients in both, the loops
        of one graph mix the views and a step takes 1.4 times as long: bench/train_step.py."""
        self._checked = False
        name = classifier or last_linear(model)
        classifier_width(model, name)  # which names what is wrong with it
        self._binary_tap = FeatureTap(self.binary, name, collect_layers)
        self._latent_tap = FeatureTap(self.latent, name, collect_layers)

    def forward(self, x: Tensor) -> Views:
        if torch.compiler.is_compiling() or self._checked:
            return self._both(x)
        self._checked = True
        with Watch(self.binary) as watch:
            views = self._both(x)
        warn_of_constant(watch.constant())
        return views

    def _both(self, x: Tensor) -> Views:
        self._binary_tap.arm()
        logits = self.binary(x)
        features, layers = self._binary_tap.take()
        if self.compiled_apart:
            torch._dynamo.graph_break()
        self._latent_tap.arm()
        with torch.set_grad_enabled(self.latent_grad and torch.is_grad_enabled()):
            latent_logits = self.latent(x)
        latent_features, latent_layers = self._latent_tap.take()
        return Views(logits, features, latent_logits, latent_features, layers, latent_layers)

    def check_shared(self) -> None:
        """Raise if the two views no longer hold the same Parameters, as after load_state_dict(assign=True)."""
        latent = dict(self.latent.named_parameters())
        for name, parameter in self.binary.named_parameters():
            if latent[name] is not parameter:
                raise ViewError(
                    f"the views no longer share {name}: load into the model before TwoView(model), without assign=True"
                )
