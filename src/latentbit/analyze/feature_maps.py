"""What one binary layer is given for one image, in three networks over the same weights (paper, Fig. 3).

(a) B with its own BatchNorm: sign(x). (b) W in the statistics of B: sign(x). (c) W with renewed statistics:
hardtanh(x). The maps are those after the activation, as the convolution reads them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from latentbit.analyze.trained import NothingToAnalyze
from latentbit.errors import nearest
from latentbit.layers import BinaryConv2d
from latentbit.views import TwoView, stale_view
from latentbit.views.numbers import NUMBERS, B


@dataclass(frozen=True)
class Maps:
    """Activations (C, H, W) in -1 ... 1 of each network, in the order of the figure's rows."""

    layer: str
    views: dict[str, np.ndarray]

    def agreement(self) -> dict[str, float]:
        """Share of places where the sign is that of B; 0.5 is chance."""
        reference = self.views[B.key] >= 0
        return {
            key: float(((maps >= 0) == reference).mean()) for key, maps in self.views.items() if key != B.key
        }


def maps(views: TwoView, image: Tensor, layer: str | None = None) -> Maps:
    """The maps of one image (C, H, W) at `layer`; by default the last one before the map first shrinks."""
    shapes = map_shapes(views.binary, image)
    name = layer or default_layer(shapes)
    check_layer(views.binary, name)
    trees = zip(NUMBERS, (views.binary, stale_view(views.binary), views.latent), strict=True)
    return Maps(name, {number.key: _catch(tree, name, image) for number, tree in trees})


def check_layer(model: nn.Module, name: str) -> None:
    """Refuse a name that is not that of a binary convolution, before anything is computed."""
    names = [found for found, module in model.named_modules() if isinstance(module, BinaryConv2d)]
    if name not in names:
        raise NothingToAnalyze(
            f"there is no binary convolution {name!r}{nearest(name, names) or '.'} The network has {', '.join(names)}"
        )


def map_shapes(tree: nn.Module, image: Tensor) -> dict[str, tuple[int, ...]]:
    """Name of every binary convolution -> shape of its input for this image."""
    shapes: dict[str, tuple[int, ...]] = {}
    layers = {module: name for name, module in tree.named_modules() if isinstance(module, BinaryConv2d)}

    def note(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        shapes.setdefault(layers[module], tuple(args[0].shape[1:]))  # type: ignore[index]

    hooks = [module.register_forward_pre_hook(note) for module in layers]
    _run(tree, image)
    for hook in hooks:
        hook.remove()
    if not shapes:
        raise NothingToAnalyze("feature maps need a binary convolution, and this network has none")
    return shapes


def default_layer(shapes: dict[str, tuple[int, ...]]) -> str:
    """The deepest layer that still sees maps of the largest size: detail, and what layers before it did."""
    largest = max(shape[-1] for shape in shapes.values())
    return [name for name, shape in shapes.items() if shape[-1] == largest][-1]


def _catch(tree: nn.Module, name: str, image: Tensor) -> np.ndarray:
    layer = tree.get_submodule(name)
    assert isinstance(layer, BinaryConv2d)
    caught: list[Tensor] = []

    def catch(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        activation = layer.binarizer.latent_input if layer.view == "latent" else layer.binarizer.input
        caught.append(activation(args[0]))

    hook = layer.register_forward_pre_hook(catch)
    _run(tree, image)
    hook.remove()
    return caught[0][0].float().cpu().numpy()


@torch.no_grad()
def _run(tree: nn.Module, image: Tensor) -> None:
    tree.eval()
    tree(image[None])
