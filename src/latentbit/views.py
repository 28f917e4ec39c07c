"""The two views of one network: B with sign activations, W with hard tanh, over the same Parameters.

A view is an object, not a mode: nothing is switched, so nothing can be left switched. Each view has its own
BatchNorm statistics and both share gamma and beta, which are BN_B and BN_W of the paper (Eq. 3).
Wrap, move and convert the TwoView, never one half of it. FSDP replaces Parameters and is not supported.
"""

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS, View


class ViewError(LatentbitError):
    """A view was asked of a model that can not give it, or its Parameters came apart."""


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

    logits: Tensor
    features: Tensor
    latent_logits: Tensor
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
        name = classifier or last_linear(model)
        self._binary_tap = FeatureTap(self.binary, name, collect_layers)
        self._latent_tap = FeatureTap(self.latent, name, collect_layers)

    def forward(self, x: Tensor) -> Views:
        self._binary_tap.arm()
        logits = self.binary(x)
        features, layers = self._binary_tap.take()
        self._latent_tap.arm()
        with torch.set_grad_enabled(self.latent_grad and torch.is_grad_enabled()):
            latent_logits = self.latent(x)
        latent_features, latent_layers = self._latent_tap.take()
        return Views(logits, features, latent_logits, latent_features, layers, latent_layers)

    def latent_buffers(self) -> dict[str, Tensor]:
        """What a checkpoint needs beside `binary.state_dict()`: the latent view's own BN statistics."""
        return dict(self.latent.named_buffers())

    def load_latent_buffers(self, buffers: dict[str, Tensor]) -> None:
        """Copy back what latent_buffers() gave."""
        mine = self.latent_buffers()
        if mine.keys() != buffers.keys():
            odd = sorted(mine.keys() ^ buffers.keys())
            raise ViewError(f"latent statistics do not fit this network: {', '.join(odd[:3])}")
        with torch.no_grad():
            for name, buffer in mine.items():
                buffer.copy_(buffers[name])

    def check_shared(self) -> None:
        """Raise if the two views no longer hold the same Parameters, as after load_state_dict(assign=True)."""
        latent = dict(self.latent.named_parameters())
        for name, parameter in self.binary.named_parameters():
            if latent[name] is not parameter:
                raise ViewError(
                    f"the views no longer share {name}: load into the model before TwoView(model), without assign=True"
                )


def last_linear(model: nn.Module) -> str:
    """Name of the last linear layer in module order, which classifies in nearly every network."""
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ViewError(
            f"{type(model).__name__} has no linear layer: name its classifier, TwoView(classifier=...)"
        )
    return names[-1]


def classifier_width(model: nn.Module) -> int:
    """Number of features that the last linear layer reads."""
    layer = model.get_submodule(last_linear(model))
    assert isinstance(layer, nn.Linear)
    return layer.in_features


class OutputTap:
    """Catches the outputs of some modules in order of execution, between arm and take.

    Unarmed it holds on to nothing: a network may also be run alone, as evaluation does.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self.armed = False
        self.outputs: list[Tensor] = []
        for module in modules:
            module.register_forward_hook(self._catch)

    def arm(self) -> None:
        """The next forward is to be caught."""
        self.armed, self.outputs = True, []

    def _catch(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if self.armed:
            self.outputs.append(output)

    def take(self) -> list[Tensor]:
        """Outputs of the forward just made, which are then forgotten."""
        outputs = self.outputs
        self.armed, self.outputs = False, []
        return outputs


class FeatureTap:
    """Catches the input of the classifier, and the outputs of binary layers if asked, between arm and take."""

    def __init__(self, tree: nn.Module, classifier: str, collect_layers: bool = False) -> None:
        self.armed = False
        self.features: Tensor | None = None
        self.classifier = classifier
        tree.get_submodule(classifier).register_forward_pre_hook(self._catch_features)
        self.layers = OutputTap(m for m in tree.modules() if collect_layers and isinstance(m, BINARY_LAYERS))

    def arm(self) -> None:
        """The next forward is to be caught."""
        self.armed, self.features = True, None
        self.layers.arm()

    def _catch_features(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        if self.armed:
            self.features = args[0]

    def take(self) -> tuple[Tensor, list[Tensor]]:
        """Features (N, D) and layer outputs of the forward just made, which are then forgotten."""
        features, outputs = self.features, self.layers.take()
        self.armed, self.features = False, None
        if features is None:
            raise ViewError(
                f"the forward pass did not reach {self.classifier!r}: name the classifier that it uses"
            )
        return features.flatten(1), outputs


def stage_tap(network: nn.Module) -> OutputTap:
    """Catches the map that each stage of a network ends with; the network names them in `stage_names`."""
    names = getattr(network, "stage_names", ())
    if not names:
        raise ViewError(
            f"{type(network).__name__} has no stage_names: list there the modules whose maps are to be compared"
        )
    return OutputTap(network.get_submodule(name) for name in names)


@torch.no_grad()
def recalibrate(view: nn.Module, batches: Iterable[Tensor]) -> int:
    """Collect the BatchNorm statistics of `view` anew, as the plain average over `batches`; returns their number.

    With it W regains its accuracy (W-dagger of the paper). Only BatchNorm learns: dropout stays off, and
    momentum and training modes are put back even if a batch fails.
    """
    norms = [m for m in view.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    n_batches = 0
    with _collecting(view, norms):
        for batch in batches:
            view(batch)
            n_batches += 1
    if norms and n_batches == 0:
        raise ViewError("recalibrate was given no batch: the statistics are reset and unusable")
    return n_batches


@contextmanager
def _collecting(view: nn.Module, norms: list[_BatchNorm]) -> Iterator[None]:
    training = {module: module.training for module in view.modules()}
    momentum = {norm: norm.momentum for norm in norms}
    try:
        view.eval()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # cumulative average instead of an exponential one
            norm.train()
        yield
    finally:
        for module, mode in training.items():
            module.training = mode
        for norm, value in momentum.items():
            norm.momentum = value
