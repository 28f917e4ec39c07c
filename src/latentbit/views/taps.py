"""Catching what passes inside a network during one forward: features, outputs of layers, maps of stages."""

from collections.abc import Iterable

from torch import Tensor, nn

from latentbit.errors import LatentbitError
from latentbit.layers import BINARY_LAYERS


class ViewError(LatentbitError):
    """A view was asked of a model that cannot give it, or its Parameters came apart."""


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
