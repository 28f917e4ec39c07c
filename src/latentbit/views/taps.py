"""Catching what passes inside a network during one forward: features, outputs of layers, maps of stages."""

from collections.abc import Iterable

from torch import Tensor, nn

from latentbit.errors import LatentbitError, nearest
from latentbit.layers import BINARY_LAYERS


class ViewError(LatentbitError):
    """A view was asked of a model that cannot give it, or its Parameters came apart."""


def last_linear(model: nn.Module) -> str:
    """Name of the last linear layer in module order, which classifies in nearly every network."""
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ViewError(
            f"{type(model).__name__} has no linear layer: name its classifier, the layer that reads the features, "
            "with classifier=..."
        )
    return names[-1]


def classifier_width(model: nn.Module, classifier: str | None = None) -> int:
    """Number of features that the classifier reads: that of this name, else the last linear layer."""
    name = classifier or last_linear(model)
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        names = [
            found for found, module in model.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)
        ]
        raise ViewError(
            f"there is no layer {name!r}{nearest(name, names) or '.'} Layers: {', '.join(names)}"
        ) from None
    if isinstance(layer, nn.Linear):
        return layer.in_features
    if isinstance(layer, nn.Conv2d):
        return layer.in_channels
    raise ViewError(
        f"classifier {name!r} is a {type(layer).__name__}: name the linear layer or convolution that gives the output"
    )


def pooled(features: Tensor, classifier: nn.Module) -> Tensor:
    """Features of one vector per image: means over the pixels of a map (N, D, H, W), or over tokens (N, T, D)."""
    if isinstance(classifier, nn.Conv2d):
        return features.flatten(2).mean(2)
    return features.flatten(1, -2).mean(1) if features.dim() > 2 else features


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


class InputTap:
    """Catches what enters the binary layers of a network, as (N, C, ...), between arm and take."""

    def __init__(self, tree: nn.Module) -> None:
        self.armed = False
        self.inputs: list[Tensor] = []
        for module in tree.modules():
            if isinstance(module, BINARY_LAYERS):
                module.register_forward_pre_hook(self._catch)

    def arm(self) -> None:
        """The next forward is to be caught."""
        self.armed, self.inputs = True, []

    def _catch(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        if self.armed:
            # A linear layer has its channels last, whatever is in front of them.
            self.inputs.append(args[0].flatten(0, -2) if isinstance(module, nn.Linear) else args[0])

    def take(self) -> list[Tensor]:
        """Inputs of the forward just made, which are then forgotten."""
        inputs = self.inputs
        self.armed, self.inputs = False, []
        return inputs


class FeatureTap:
    """Catches the input of the classifier, and the outputs of binary layers if asked, between arm and take.

    Where the classifier reads what an nn.Dropout gives, the features are what went into the dropout: both views have
    masks of their own, and the distance of two features is not to be that of two masks.
    """

    def __init__(self, tree: nn.Module, classifier: str, collect_layers: bool = False) -> None:
        self.armed = False
        self.features: Tensor | None = None
        self.classifier = classifier
        self.module = tree.get_submodule(classifier)
        self.module.register_forward_pre_hook(self._catch_features)
        self.dropped: tuple[Tensor, Tensor] | None = None
        for dropout in tree.modules():
            if isinstance(dropout, nn.Dropout):
                dropout.register_forward_hook(self._catch_dropped)
        self.layers = OutputTap(m for m in tree.modules() if collect_layers and isinstance(m, BINARY_LAYERS))

    def arm(self) -> None:
        """The next forward is to be caught."""
        self.armed, self.features, self.dropped = True, None, None
        self.layers.arm()

    def _catch_dropped(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if self.armed:
            self.dropped = (args[0], output)

    def _catch_features(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        if self.armed:
            self.features = args[0]
            if self.dropped is not None and self.dropped[1] is args[0]:
                self.features = self.dropped[0]

    def take(self) -> tuple[Tensor, list[Tensor]]:
        """Features (N, D) and layer outputs of the forward just made, which are then forgotten."""
        features, outputs = self.features, self.layers.take()
        self.armed, self.features, self.dropped = False, None, None
        if features is None:
            raise ViewError(
                f"the forward pass did not reach {self.classifier!r}: name the classifier that it uses"
            )
        return pooled(features, self.module), outputs


def stage_tap(network: nn.Module) -> OutputTap:
    """Catches the map that each stage of a network ends with; the network names them in `stage_names`."""
    names = getattr(network, "stage_names", ())
    if not names:
        raise ViewError(
            f"{type(network).__name__} has no stage_names: list there the modules whose maps are to be compared"
        )
    return OutputTap(network.get_submodule(name) for name in names)
